#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/data/frameworks/megatron_layouts.txt: what megatron-core's own PipelineParallelLayerLayout says of random layout strings, without PyTorch:
its class and its enum are taken out of their files. usage: tests/oracles/megatron_layouts.py FOLDER-OF-megatron >FILE"""
import ast, copy, enum, functools, logging, random, re, sys, typing

core = sys.argv[1] + "/megatron/core/transformer/"


def taken(path, name, scope):
    tree = ast.parse(open(path).read())
    node = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    exec(compile(ast.Module([node], []), path, "exec"), scope)
    return scope[name]


scope = {"enum": enum, "copy": copy, "re": re, "Optional": typing.Optional, "lru_cache": functools.lru_cache, "logger": logging.getLogger("none")}
scope["LayerType"] = taken(core + "enums.py", "LayerType", scope)
Layout = taken(core + "pipeline_parallel_layer_layout.py", "PipelineParallelLayerLayout", scope)


def item(draw):
    word = draw.choice(["t", "t", "tt", "t|", "|", "|t", "tt|", "t,t"])
    if draw.random() < 0.3: return f"({word}{draw.choice(['', '|', 't', ',t'])})*{draw.randrange(0, 5)}"
    return word + (f"*{draw.randrange(0, 7)}" if draw.random() < 0.3 else "")


def text_of(draw):
    middle = "".join(item(draw) for _ in range(draw.randrange(1, 7)))
    text = "E" + middle + draw.choice(["", "|", ","]) + draw.choice(["", "", "", "m", "mm", "m|", "|m|"]) + "L"
    if draw.random() < 0.12:
        at = draw.randrange(len(text))
        text = text[:at] + draw.choice(["E", "x", "m", "(", ")", "*2", "", "L", "T", " ", "3"]) + text[at + 1:]
    return text


print("# layout, P, layers, MTP layers, then refused, or the layers of each stage: megatron-core 0.19.2 (tests/oracles/megatron_layouts.py)")
draw = random.Random(18)
for _ in range(400):
    text, pipeline = text_of(draw), draw.choice([1, 2, 2, 2, 3, 4, 4, 5])
    try: layers, mtp = [sum(stage.count(scope["LayerType"][name]) for stage in Layout.parse_str_to_list(text)) for name in ("decoder", "mtp")]
    except AssertionError: layers, mtp = 4, 0
    if draw.random() < 0.1: layers += 1
    try:
        layout = Layout(text, pipeline)
        layout.validate_layer_layout(layers, mtp)
        chunks = layout.virtual_pipeline_model_parallel_size
        verdict = " ".join(str(layout.layout[rank][chunk].count(scope["LayerType"].decoder)) for chunk in range(chunks) for rank in range(pipeline))
    except (AssertionError, IndexError): verdict = "refused"
    print(text, pipeline, layers, mtp, verdict, sep="\t")
