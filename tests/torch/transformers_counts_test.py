# SPDX-License-Identifier: Apache-2.0
"""The classes of an installed Hugging Face transformers count what tests/oracles/transformers_N.json says of the same release's major version:
each small model anew, on PyTorch's meta device. Skipped, with the reason, without PyTorch or transformers, and for another release."""
import json
import pathlib
import sys

try:
    import torch
    import transformers
except ImportError as problem:
    print("1..0 # SKIP %s: pip install torch transformers" % problem)
    sys.exit(77)

ORACLES = pathlib.Path(__file__).resolve().parent.parent / "oracles"


def load():
    path = ORACLES / ("transformers_%s.json" % transformers.__version__.split(".")[0])
    if not path.exists():
        print("1..0 # SKIP no %s" % path.name)
        sys.exit(77)
    oracle = json.loads(path.read_text())
    if "transformers %s," % transformers.__version__ not in oracle["source"]:
        print("1..0 # SKIP %s is of another release than the installed %s" % (path.name, transformers.__version__))
        sys.exit(77)
    return oracle["cases"]


def count(config):
    model_class = getattr(transformers, config["architectures"][0])
    with torch.device("meta"):
        model = model_class(model_class.config_class.from_dict(dict(config)))
    buffers = sum(buffer.numel() for name, buffer in model.named_buffers() if "e_score_correction" in name)
    unread = sum(module.zero_expert_num * module.gate_up_proj[0].numel() for module in model.modules()   # transformers_families.py, unread
                 if type(module).__name__ == "LongcatFlashExperts")
    return sum(parameter.numel() for parameter in model.parameters()) - unread + buffers


def main():
    transformers.PreTrainedModel._initialize_weights = lambda *arguments, **options: None
    cases, wrong = load(), 0
    print("1..%d" % len(cases))
    for number, case in enumerate(cases, 1):
        found = count(case["config"])
        wrong += found != case["parameters"]
        print("%s %d %s: %d, expected %d" % ("ok" if found == case["parameters"] else "not ok", number, case["config"]["model_type"], found,
                                             case["parameters"]))
    sys.exit(1 if wrong else 0)


main()
