#!/bin/sh
# llama-3.1-8b in DeepSpeed, as planned, with the keys of 0.19.8: 1F1B · P 2 · M 16 · TP 1 · DP 2
# layers of each stage, first to last: 16 16
# TRAIN is your program, which hands planned.py's values to DeepSpeed; model, data, optimizer and learning rate are its own.
# For DeepSpeed 0.19.8, on whose code what is written here rests.
set -eu
folder=$(mktemp -d)
cat >"$folder/ds_config.json" <<'JSON'
{
  "train_batch_size": 32,
  "train_micro_batch_size_per_gpu": 1,
  "gradient_accumulation_steps": 16,
  "zero_optimization": { "stage": 1 },
  "bf16": { "enabled": true },
  "data_types": { "grad_accum_dtype": "fp32" }
}
JSON
cat >"$folder/planned.py" <<'PYTHON'
# What of the plan no key of DeepSpeed's configuration says.
layers_per_stage = [16, 16]
sequence_length = 4096

# PipelineModule(layers=…, loss_fn=…, **planned.pipeline), of layers of the class DecoderLayer: another name goes here.
pipeline = dict(num_stages=2, partition_method="type:DecoderLayer")


def check(module):
    """Ends the run where DeepSpeed cuts the layers otherwise than the plan: it takes no list of them."""
    pattern = pipeline["partition_method"].split(":")[1].lower()
    names = [getattr(layer, "typename", type(layer)).__name__.lower() for layer in module._layer_specs]
    built = [sum(pattern in name for name in names[a:b]) for a, b in zip(module.parts, module.parts[1:])]
    assert built == layers_per_stage, f"the stages have {built} layers, planned are {layers_per_stage}"
PYTHON
export PYTHONPATH="$folder${PYTHONPATH:+:$PYTHONPATH}"
exec torchrun --nproc_per_node 4 --nnodes 1 "${TRAIN:?}" \
  --deepspeed --deepspeed_config "$folder/ds_config.json" "$@"
