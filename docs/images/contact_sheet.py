"""The README's picture: four classes of the demo's contact sheet.

make demo
.venv/bin/python docs/images/contact_sheet.py demo-out
"""

import argparse
from pathlib import Path

from bagwise.datasets import load_demo_photos
from bagwise.discovery.runfolder import RunFolder
from bagwise.discovery.sources import read_source
from bagwise.evaluation.runs import truth_of
from bagwise.report.contact_sheet import write_contact_sheet

SHOWN = ("fish", "windmill", "solar", "hammer")

if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", type=Path, help="the folder that bagwise demo wrote")
    run = RunFolder(parser.parse_args().demo / "photographs")
    truth = truth_of(run, read_source(load_demo_photos().truth))
    print(write_contact_sheet(run, Path(__file__).with_name("contact-sheet.jpg"), truth, classes=SHOWN))
