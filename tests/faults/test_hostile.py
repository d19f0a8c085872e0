"""Files from a stranger that mean harm: refused with one sentence, before they cost memory or run anything."""

import io
import json
import pickle
import resource
import zipfile

import numpy as np
import pytest
from tests.faults.harness import in_child

import bagwise
from bagwise import RMISVC
from bagwise.persistence import ModelFileError


@pytest.fixture
def good(tmp_path):
    """The parts of a good model file."""
    rng = np.random.RandomState(0)
    model = RMISVC(epochs=1, random_state=0).fit(rng.randn(6, 3), [0, 1] * 3)
    bagwise.save(model, tmp_path / "good")
    with zipfile.ZipFile(tmp_path / "good") as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def write(path, parts):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    return path


class Attack:
    def __reduce__(self):
        return exec, ("raise SystemExit('the file ran code')",)


def test_pickle_in_place_of_an_array(good, tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.array([Attack()], dtype=object), allow_pickle=True)
    name = next(name for name in good if name.endswith(".npy"))
    with pytest.raises(ModelFileError, match="Python objects"):
        bagwise.load(write(tmp_path / "m", {**good, name: buffer.getvalue()}))


def test_pickle_in_place_of_a_model(tmp_path):
    (tmp_path / "m").write_bytes(pickle.dumps(Attack()))
    with pytest.raises(ModelFileError, match="not a bagwise model"):
        bagwise.load(tmp_path / "m")


@pytest.mark.parametrize("name", ["builtins.eval", "os", "Pipeline", "object", "Bags", "__import__"])
def test_classes_that_are_none_of_ours(good, tmp_path, name):
    document = json.loads(good["model.json"])
    document["model"]["object"] = name
    with pytest.raises(ModelFileError, match="does not know"):
        bagwise.load(write(tmp_path / "m", {**good, "model.json": json.dumps(document)}))


def refused_in_little_memory(path, message):
    """Whether a child that may allocate 100 MB more than it has refuses the file with this message."""

    def work():
        with open("/proc/self/status") as status:
            data = next(int(line.split()[1]) for line in status if line.startswith("VmData")) << 10
        resource.setrlimit(resource.RLIMIT_DATA, (data + (100 << 20),) * 2)
        with pytest.raises(ModelFileError, match=message):
            bagwise.load(path)

    return in_child(work) == 0


def test_decompression_bombs(good, tmp_path):
    """A file of 300 kilobytes that unpacks to 300 megabytes, in the document or in an array."""
    zeros = bytes(300 << 20)
    assert refused_in_little_memory(write(tmp_path / "a", {**good, "model.json": zeros}), "unpacks to")
    assert refused_in_little_memory(write(tmp_path / "b", {**good, "more.npy": zeros}), "unpacks to")


def test_an_array_larger_than_its_file(good, tmp_path):
    name = next(name for name in good if name.endswith(".npy"))
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (1 << 20, 1 << 20)})
    assert refused_in_little_memory(
        write(tmp_path / "m", {**good, name: header.getvalue() + bytes(64)}), "shorter than"
    )


def test_bottomless_document(good, tmp_path):
    deep = b'{"format": 1, "model": ' + b'{"list": [' * 50_000 + b"]}" * 50_000 + b"}"
    with pytest.raises(ModelFileError, match="damaged"):
        bagwise.load(write(tmp_path / "m", {**good, "model.json": deep}))


XML = "<annotation><object><name>{}</name><bndbox>" + "".join(
    f"<{side}>{value}</{side}>" for side, value in (("xmin", 1), ("ymin", 1), ("xmax", 9), ("ymax", 9))
) + "</bndbox></object></annotation>"  # fmt: skip
LAUGHS = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("expanding", f'<!DOCTYPE a [<!ENTITY l0 "ha">{LAUGHS}]>' + XML.format("&l9;")),
        ("external", '<!DOCTYPE a [<!ENTITY f SYSTEM "file:///etc/passwd">]>' + XML.format("&f;")),
        ("parameter", '<!DOCTYPE a [<!ENTITY % f SYSTEM "http://127.0.0.1:9/"> %f;]>' + XML.format("cat")),
    ],
)
def test_xml_entities(tmp_path, kind, text):
    pytest.importorskip("PIL")
    from tests.fuzz.targets import PICTURE

    from bagwise.discovery.sources.reading import read_source

    for name in ("bad", "good"):
        (tmp_path / "Annotations").mkdir(exist_ok=True)
        (tmp_path / "JPEGImages").mkdir(exist_ok=True)
        (tmp_path / "JPEGImages" / f"{name}.png").write_bytes(PICTURE)
        (tmp_path / "Annotations" / f"{name}.xml").write_text(text if name == "bad" else XML.format("cat"))
    images = read_source(tmp_path)
    assert [labels for labels in images.labels if labels] == [("cat",)]
    assert len(images.problems) == 1
    assert "bad" in images.problems[0].file


def test_picture_that_unpacks_to_too_much(tmp_path):
    """A PNG of a few kilobytes with 50 000 x 50 000 pixels."""
    import struct
    import zlib

    pytest.importorskip("PIL")
    from bagwise.discovery.sources.images import ImageError, read_image

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    side = 50_000
    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(1 << 20))
    data = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")
    (tmp_path / "bomb.png").write_bytes(data)
    with pytest.raises(ImageError, match=r"bomb\.png"):
        read_image(tmp_path / "bomb.png")


def test_store_of_another_version(tmp_path):
    from bagwise.discovery.features.store import FeatureStore, StoreError

    (tmp_path / "manifest.json").write_text(json.dumps({"format": 99, "settings": {}}))
    with pytest.raises(StoreError, match=r"format 99; this version reads \d"):
        FeatureStore(tmp_path)
    assert json.loads((tmp_path / "manifest.json").read_text())["format"] == 99


@pytest.mark.parametrize("name", ["_dual_coef_", "support_", "_intercept_", "support_vectors_", "_probB"])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
def test_a_machine_whose_arrays_do_not_belong_together(tmp_path, name, kernel):
    """LIBSVM would read on behind the end of the shorter one."""
    from sklearn.svm import SVC

    x = np.random.RandomState(0).randn(40, 3)
    model = SVC(kernel=kernel).fit(x @ x.T if kernel == "precomputed" else x, x[:, 0] > 0)
    bagwise.save(model, tmp_path / "good")
    np.testing.assert_array_equal(bagwise.load(tmp_path / "good").support_, model.support_)
    wrong = np.zeros((3, 3)) if name == "support_vectors_" else np.atleast_2d(getattr(model, name))[:, :1].copy()
    if name == "_probB":
        wrong = np.zeros(7)
    elif name == "_intercept_":
        wrong = np.zeros(0)
    elif name == "support_":
        wrong = model.support_ + 1_000_000
    setattr(model, name, wrong)
    bagwise.save(model, tmp_path / "bad")
    with pytest.raises(ModelFileError, match="do not belong together"):
        bagwise.load(tmp_path / "bad")
