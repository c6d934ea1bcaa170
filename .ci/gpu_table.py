"""Prints the table of `.ci/gpu`: steps a second by training, device and library. Usage: gpu_table.py DIR"""

import json
import pathlib
import statistics
import sys


def lines(path):
    for line in path.read_text(errors="replace").splitlines():
        if line.startswith("{"):
            yield json.loads(line)


def main(out):
    rows, columns = {}, []
    card = out / "card.log"
    print(card.read_text().strip() if card.exists() else "no GPU")
    for path in sorted(out.glob("train-*.log")):
        column = path.stem.removeprefix("train-")
        columns.append(column)
        speeds = {}
        for event in lines(path):
            if event.get("name") == "charts/SPS":
                speeds.setdefault(event["stage"], []).append(event["value"])
        for stage, values in speeds.items():
            # The first updates make buffers, or act at random.
            rows.setdefault(stage, {})[column] = statistics.median(values[len(values) // 2 :])
    for path in sorted(out.glob("peer-*.log")):
        column = path.stem.removeprefix("peer-")
        columns.append(column)
        for result in lines(path):
            rows.setdefault(result["training"], {})[column] = result["steps_s"]
    print("| steps/s | " + " | ".join(columns) + " |\n| --- |" + " --- |" * len(columns))
    for name, row in rows.items():
        cells = (f"{row[column]:,.0f}" if column in row else "–" for column in columns)
        print(f"| {name} | " + " | ".join(cells) + " |")
    for path in sorted(out.glob("auto-*.log")):
        for line in path.read_text().splitlines():
            if line.startswith("device: "):
                print(f"{path.stem}: {line}")
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main(pathlib.Path(sys.argv[1])))
