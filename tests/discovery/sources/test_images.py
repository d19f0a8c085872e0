"""Reading photographs: every kind we promise, and every way a file can be bad."""

import sys
import threading
import warnings

import numpy as np
import pytest

pytest.importorskip("PIL")
from PIL import Image

from bagwise.discovery.sources import images as reading
from bagwise.discovery.sources.images import ImageError, read_image


@pytest.fixture
def photograph():
    """A smooth picture, so that lossy formats keep it within a few grey levels."""
    y, x = np.mgrid[0:40, 0:60]
    return np.stack([x * 4, y * 6, 255 - x * 4], axis=2).astype(np.uint8)


@pytest.mark.parametrize("name", ["a.jpg", "a.png", "a.webp", "a.bmp", "a.tif"])
def test_formats(tmp_path, photograph, name):
    Image.fromarray(photograph).save(tmp_path / name)
    image = read_image(tmp_path / name)
    assert image.dtype == np.uint8
    assert image.shape == photograph.shape
    assert np.abs(image.astype(int) - photograph).mean() < 4


def test_heic(tmp_path, photograph):
    heif = pytest.importorskip("pillow_heif", reason="HEIC needs the extra heic")
    heif.from_pillow(Image.fromarray(photograph)).save(tmp_path / "a.HEIC", quality=95)
    image = read_image(tmp_path / "a.HEIC")
    assert image.shape == photograph.shape
    assert np.abs(image.astype(int) - photograph).mean() < 6


def test_kinds_that_are_not_read_say_so(tmp_path, monkeypatch):
    Image.new("RGB", (20, 20)).save(tmp_path / "a.gif")
    with pytest.raises(ImageError, match=r"a\.gif is a GIF, .* save it as PNG"):
        read_image(tmp_path / "a.gif")
    monkeypatch.setitem(sys.modules, "pillow_heif", None)  # as if it were not there
    (tmp_path / "b.heic").write_bytes(b"ftypheic")
    with pytest.raises(ImageError, match=r"pip install 'bagwise\[heic\]'"):
        read_image(tmp_path / "b.heic")


def test_no_image_is_passed_over_without_a_word(tmp_path):
    from bagwise.discovery.sources.reading import read_source

    (tmp_path / "cat").mkdir()
    for name in ("a.png", "b.gif", "c.heic"):
        (tmp_path / "cat" / name).write_bytes(b"x")
    assert read_source(tmp_path).files == ["cat/a.png", "cat/b.gif", "cat/c.heic"], "reading then says what is wrong"


@pytest.mark.parametrize("mode", ["L", "1", "P", "LA", "RGBA", "CMYK"])
def test_modes_become_rgb(tmp_path, photograph, mode):
    name = tmp_path / ("a.tif" if mode == "CMYK" else "a.png")
    Image.fromarray(photograph).convert(mode).save(name)
    assert read_image(name).shape == (40, 60, 3)


def test_transparent_parts_are_white(tmp_path):
    pixels = np.zeros((20, 20, 4), np.uint8)
    pixels[:10, :, 3] = 255
    Image.fromarray(pixels, "RGBA").save(tmp_path / "a.png")
    image = read_image(tmp_path / "a.png")
    assert (image[:10] == 0).all()
    assert (image[10:] == 255).all()


def test_sixteen_bits_keep_their_range(tmp_path):
    ramp = np.tile(np.linspace(0, 65535, 64).astype(np.uint16), (16, 1))
    Image.fromarray(ramp).save(tmp_path / "a.png")
    image = read_image(tmp_path / "a.png")
    np.testing.assert_allclose(image[0, :, 0], np.linspace(0, 255, 64), atol=1.0)


@pytest.mark.parametrize("peak", [1.0, 200.0])
def test_float_tiff(tmp_path, peak):
    ramp = np.tile(np.linspace(0, peak, 64, dtype=np.float32), (16, 1))
    Image.fromarray(ramp).save(tmp_path / "a.tif")
    assert read_image(tmp_path / "a.tif")[0, -1, 0] == (255 if peak == 1.0 else 200)


def test_exif_orientation_is_honoured(tmp_path, photograph):
    exif = Image.Exif()
    exif[0x0112] = 6  # the camera was turned: rotate a quarter clockwise to look at it
    Image.fromarray(photograph).save(tmp_path / "a.png", exif=exif)
    np.testing.assert_array_equal(read_image(tmp_path / "a.png"), np.rot90(photograph, -1))


def test_any_script_in_the_name(tmp_path, photograph):
    Image.fromarray(photograph).save(tmp_path / "猫 и кот ñ.png")
    assert read_image(tmp_path / "猫 и кот ñ.png").shape == (40, 60, 3)


def test_very_wide(tmp_path):
    Image.new("RGB", (20_000, 40), "red").save(tmp_path / "wide.png")
    assert read_image(tmp_path / "wide.png").shape == (40, 20_000, 3)


@pytest.mark.parametrize("extension", ["jpg", "png", "webp"])
def test_truncated(tmp_path, photograph, extension):
    noise = np.random.default_rng(0).integers(0, 255, (200, 200, 3), dtype=np.uint8)
    whole = tmp_path / f"whole.{extension}"
    Image.fromarray(noise).save(whole)
    cut = tmp_path / f"cut.{extension}"
    cut.write_bytes(whole.read_bytes()[:5000])
    with pytest.raises(ImageError, match="cut"):
        read_image(cut)


def test_bad_files_are_named(tmp_path):
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "text.jpg").write_text("not an image")
    Image.new("RGB", (1, 1)).save(tmp_path / "dot.png")
    for name, reason in {
        "empty.jpg": "zero bytes",
        "text.jpg": "not a JPEG",
        "dot.png": "too small",
        "missing.png": "does not exist",
    }.items():
        with pytest.raises(ImageError, match=f"{name}.*{reason}"):
            read_image(tmp_path / name)


def test_decompression_bomb_is_refused(tmp_path):
    Image.new("1", (16_000, 12_000)).save(tmp_path / "bomb.png")  # 24 KB that unpack to 576 MB of RGB
    with pytest.raises(ImageError, match="bomb"):
        read_image(tmp_path / "bomb.png")


def test_threads_that_read_leave_the_warnings_of_the_process_alone(tmp_path, monkeypatch):
    """The one that began first ends first: the other would bring back what the first had set."""
    inside, leave, threads = {}, {}, {}

    def wait_inside(path, *size):
        inside[path.name].set()
        assert leave[path.name].wait(30)

    monkeypatch.setattr(reading, "_check_size", wait_inside)
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        before = list(warnings.filters)
        for name in ("a.png", "b.png"):
            Image.new("RGB", (20, 20)).save(tmp_path / name)
            inside[name], leave[name] = threading.Event(), threading.Event()
            threads[name] = threading.Thread(target=read_image, args=(tmp_path / name,))
            threads[name].start()
            assert inside[name].wait(30)
        warnings.warn("meant for the user", stacklevel=1)
        for name in ("a.png", "b.png"):
            leave[name].set()
            threads[name].join(30)
        assert warnings.filters == before
    assert [str(each.message) for each in heard] == ["meant for the user"]
