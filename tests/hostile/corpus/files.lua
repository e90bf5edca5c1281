-- files.lua: files beside a spec that are damaged: configurations of models, profiles, times, programs, measured links, plans, logs.
-- Each { name, status =, says =, text, command = }: FILE in the command is the text. Where no status stands it is 2.

local plan = "plan --gpus 16 --accelerator H100-SXM --per_gpu 400Gbps --tokens 2T --tensor 1 --pipeline 4 --schedule 1f1b --model FILE"
local profile = "plan examples/specs/measured-4xH200.json --profile FILE"
local times = "simulate 1f1b --ranks 4 --microbatches 8 --times FILE"
local program = "simulate FILE.csv"
local links = "plan examples/specs/mixtral-8x7b.json --measured FILE"
local found = "plan --inventory FILE --per_gpu 400Gbps --tokens 2T --model examples/models/tiny.json"
local watched = "monitor FILE examples/monitor/healthy.log"
local log = "monitor tests/fuzz/seeds/plan.json FILE"

local llama = [[{ "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 56, "num_attention_heads": 32,
  "num_key_value_heads": 8, "vocab_size": 128256, "max_position_embeddings": 8192, "tie_word_embeddings": false }]]
local moe = [[{ "model_type": "qwen3_moe", "hidden_size": 2048, "intermediate_size": 6144, "moe_intermediate_size": 768, "num_hidden_layers": 48,
  "num_attention_heads": 32, "num_key_value_heads": 4, "head_dim": 128, "vocab_size": 151936, "num_experts": 128, "num_experts_per_tok": 8,
  "max_position_embeddings": 40960, "tie_word_embeddings": false }]]

-- The text with one value in place of a key's; nil takes the key out.
local function changed(text, key, value)
  return (text:gsub('"' .. key .. '": [^,}]*,?', value and ('"' .. key .. '": ' .. value .. ",") or "", 1):gsub(",%s*}", " }"))
end

local list = {
  { "a model's configuration", status = 0, llama, command = plan },
  { "a configuration of experts", status = 0, moe, command = plan .. " --expert 4" },
  { "a configuration of nothing", says = "model_type", "{}", command = plan },
  { "a configuration that is a list", says = "config.json", "[]", command = plan },
  { "a configuration cut short", says = "file:1:", llama:sub(1, 90), command = plan },
  { "a family that does not exist", says = "llamma", changed(llama, "model_type", '"llamma"'), command = plan },
  { "a family that is a number", says = "model_type", changed(llama, "model_type", "7"), command = plan },
  { "no layers", says = "num_hidden_layers", changed(llama, "num_hidden_layers", "0"), command = plan },
  { "layers that are a word", says = "num_hidden_layers", changed(llama, "num_hidden_layers", '"x"'), command = plan },
  { "layers without end", says = "num_hidden_layers", changed(llama, "num_hidden_layers", "1000000000"), command = plan },
  { "half a layer", says = "num_hidden_layers", changed(llama, "num_hidden_layers", "31.5"), command = plan },
  { "a hidden size of less than nothing", says = "hidden_size", changed(llama, "hidden_size", "-4096"), command = plan },
  { "a hidden size that overflows", says = "'hidden_size'", changed(llama, "hidden_size", "9007199254740991"), command = plan },
  { "a vocabulary that overflows", says = "'vocab_size' must be", changed(llama, "vocab_size", "9007199254740992"), command = plan },
  { "heads that do not divide", says = "num_attention_heads", changed(llama, "num_attention_heads", "33"), command = plan },
  { "no heads", says = "num_attention_heads", changed(llama, "num_attention_heads", "0"), command = plan },
  { "experts under another name", status = { 0, 2 }, says = "", changed(moe, "num_experts", nil):gsub("{", '{ "num_local_experts": 128,', 1), command = plan .. " --expert 4" },
  { "experts that are missing", says = "num_experts", changed(moe, "num_experts", nil), command = plan },
  { "experts misspelt", says = "num_expertz", changed(moe, "num_experts", nil):gsub("{", '{ "num_expertz": 128,', 1), command = plan },
  { "experts of a word", says = "num_experts", changed(moe, "num_experts", '"128"'), command = plan },
  { "no experts", says = "num_experts", changed(moe, "num_experts", "0"), command = plan },
  { "less than no experts", says = "num_experts", changed(moe, "num_experts", "-128"), command = plan },
  { "more active experts than there are", says = "num_experts_per_tok", changed(moe, "num_experts_per_tok", "256"), command = plan },
  { "a configuration of ten megabytes", says = "", (" "):rep(10000000), command = plan },
  -- profiles
  { "a profile of nothing", says = "stage", "{}", command = profile },
  { "a profile without stages", says = "stage", '{ "stage": [] }', command = profile },
  { "a profile of words", says = "stage", '{ "stage": "fast" }', command = profile },
  { "a profile of no time", says = "kind_ms_cold", '{ "source": "x", "message_bytes": 1, "at": { "sequence_length": 4096, "micro_batch_size": 1 }, "stage": [ { "layers": 4, "embedding": false, "head": false, "kind_ms_cold": { "F": 0, "B": 0 } } ] }', command = profile },
  { "a profile of less than no time", says = "kind_ms_cold", '{ "source": "x", "message_bytes": 1, "at": { "sequence_length": 4096, "micro_batch_size": 1 }, "stage": [ { "layers": 4, "embedding": false, "head": false, "kind_ms_cold": { "F": -1, "B": 2 } } ] }', command = profile },
  { "a profile that is a plan", says = "", '{ "status": "planned" }', command = profile },
  { "a profile that is not there", says = "nothere", "", command = "plan examples/specs/measured-4xH200.json --profile nothere.json" },
  -- times
  { "times of nothing", says = "", "", command = times },
  { "times that are no JSON", says = "", "fast", command = times },
  { "times of another number of stages", says = "F", '{ "F": [1, 1, 1], "I": 1, "W": 1 }', command = times },
  { "times of words", says = "F", '{ "F": "x", "I": 1, "W": 1 }', command = times },
  { "times of less than nothing", says = "F", '{ "F": [-1, 1, 1, 1], "I": 1, "W": 1 }', command = times },
  { "times near the end of doubles", says = "F: expected a time such as \"10us\", 0 or from 1e-15 to 1e+09", '{ "F": 1e308, "I": 1e308, "W": 1e308 }', command = times },
  -- programs
  { "a program of nothing", says = "", "", command = program },
  { "a program of words", says = "line 1", "forward,backward\n", command = program },
  { "a program of an action that does not exist", says = "0X0", "0X0\n", command = program },
  { "a program whose backward comes first", status = { 1, 2 }, says = "0B0", "0B0,0F0\n", command = program, on = "either" },
  { "a program without backward", status = { 1, 2 }, says = "", "0F0\n1F0\n", command = program },
  { "a program that waits for itself", status = { 1, 2 }, says = "", "1F0,0F0,0B0,1B0\n", command = program },
  { "a program that does something twice", status = { 1, 2 }, says = "0F0", "0F0,0F0,0B0\n", command = program, on = "either" },
  { "a stage on two ranks", status = { 1, 2 }, says = "", "0F0,0B0\n0F1,0B1\n", command = program },
  { "a stage of a huge number", status = { 1, 2 }, says = "", "99999999999F0\n", command = program },
  { "a microbatch of a huge number", status = { 1, 2 }, says = "", "0F99999999999,0B99999999999\n", command = program },
  { "stages with a hole", status = { 1, 2 }, says = "", "0F0,0B0\n7F0,7B0\n", command = program },
  { "a rank of nothing", status = { 0, 1, 2 }, says = "", "0F0,1F0,1B0,0B0\n\n", command = program },
  { "uneven ranks, a queue a peer", status = 0, "0F0,2F0,2B0,0B0\n1F0,1B0\n", command = program .. " --runtime torch-multi --queues per_peer" },
  { "uneven ranks, as a picture", status = 0, "0F0,2F0,2B0,0B0\n1F0,1B0\n", command = program .. " --format svg" },
  { "uneven ranks, as a trace", status = 0, "0F0,2F0,2B0,0B0\n1F0,1B0\n", command = program .. " --format trace --runtime torch-multi" },
  { "a line of a megabyte", status = { 1, 2 }, says = "", ("0F0,"):rep(250000) .. "\n", command = program },
  { "a program that sends what nobody takes", status = 1, says = "program.unmatched_message", "0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n", command = program, on = "either" },
  { "a program of messages with huge numbers", status = { 1, 2 }, says = "", "0F0,0B0,99999999SEND_F99999999,0SEND_F999999999999999\n", command = program },
  { "a program of a quote without end", says = "line 1, column 1", '"' .. ("0F0,"):rep(100000) .. "\n", command = program },
  { "a program of seventeen megabytes of quotes", says = "expected at most 16777216", ('"'):rep(17825792), command = program },
  -- links
  { "links of nothing", says = "", "", command = links },
  { "links of words", says = "", "fast\nfaster\n", command = links },
  { "links of numbers alone", says = "", "1 2 3 4 5\n", command = links },
  { "links of a matrix whose row is of no column", says = "file:3: GPU1 has a row, but no column", "\tGPU0\tGPU2\tCPU Affinity\nGPU0\t X \tNV18\t0-63\nGPU1\tNV18\t X \t0-63\n", command = links },
  { "links without end", says = "file:2: GPU0 to GPU1 is NV9223372036854775807", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tNV9223372036854775807\t0-63\nGPU1\tNV18\t X \t0-63\n", command = links },
  { "links of binary", says = "", ("\0\255\27"):rep(1000), command = links },
  { "links of half a list of ranks", says = "file:3: rank 1 is missing: of ranks 0 to 2 there are 2", "# Rank 0 Group 0 Pid 1 on a device 0 [0x1]\n\n# Rank 2 Group 0 Pid 1 on a device 2 [0x3]\n# size count type redop root time algbw busbw\n8 2 float none -1 1 1 1\n16 4 float none -1 2 2 2\n", command = links },
  { "links of a huge rank", says = "file:1: ", "# Rank 99999999 Group 0 Pid 1 on a device 0 [0x1]\n# size count type redop root time algbw busbw\n", command = links },
  { "links of a line of ranks", says = "file:1: a table of no sizes", "# size count type redop root time algbw busbw\n" .. ("Rank 0 Pid "):rep(100000), command = links },
  { "links of many lines", says = "file:200001: a table of no sizes", ("# Rank\n"):rep(200000) .. "# size count type redop root time algbw busbw\n# Rank 1 Pid 1\n", command = links },
  -- inventories
  { "an inventory of nothing", says = "none of scontrol show node", "", command = found },
  { "an inventory of binary", says = "none of scontrol show node", ("\0\255\27"):rep(1000), command = found },
  { "an inventory of a node that is down", says = "without a GPU that can be used", "NodeName=a Gres=gpu:8 State=DOWN\n", command = found },
  { "an inventory of a node with GPUs without end", says = "file:1: Gres is gpu:9223372036854775807", "NodeName=a Gres=gpu:9223372036854775807 State=IDLE\n", command = found },
  { "an inventory of nodes without end", says = "file:2: a[1-999999999] is no list of nodes", "NODELIST GRES\na[1-999999999] gpu:8\n", command = found },
  { "an inventory of many lists of nodes", says = "file:2: more than 100000 nodes", "NODELIST GRES\n" .. ("a[1-99999],"):rep(3) .. "b gpu:8\n", command = found },
  { "an inventory of a line of brackets", says = "file:2: ", "NODELIST GRES\n" .. ("["):rep(1000000) .. " gpu:8\n", command = found },
  { "a hostfile of a host without slots", says = "file:2: b: expected a name and its GPUs", "a slots=8\nb\n", command = found },
  -- plans and logs
  { "a plan of nothing", says = "", "{}", command = watched },
  { "a plan that was refused", says = "refused", '{ "status": "refused" }', command = watched },
  { "a plan that is no JSON", says = "file:1:1:", "planned", command = watched },
  { "a plan of words", says = "", '{ "status": "planned", "step_seconds": "fast", "rollback": "no" }', command = watched },
  { "a log of nothing", status = 5, says = "", "", command = log },
  { "a log of noise", status = 5, says = "", "hello\nworld\n", command = log },
  { "a log of binary", status = 5, says = "", ("\0\255\27\n"):rep(1000), command = log },
  { "a log of one endless line", status = 5, says = "", ("x"):rep(5000000), command = log },
  { "a log of no time", status = { 1, 2, 5 }, says = "", ("iteration 60/ 100 | elapsed time per iteration (ms): 0.0 |\n"):rep(100), command = log, on = "either" },
  { "a log of less than no time", status = { 1, 2, 5 }, says = "", ("iteration 60/ 100 | elapsed time per iteration (ms): -5.0 |\n"):rep(100), command = log, on = "either" },
  { "a log of no number", status = { 0, 1, 2, 5 }, says = "", ("iteration 60/ 100 | elapsed time per iteration (ms): nan |\n"):rep(100), command = log, on = "either" },
  { "a log of DeepSpeed's that takes no time", status = 5, says = "", ("steps: 60 loss: 1.0 iter time (s): 0.000 samples/sec: inf\n"):rep(100), command = log },
  { "a log of NeMo's without a number", status = 5, says = "", ("Training epoch 0, iteration 60/99 | global_step: inf | train_step_timing in s: nan\n"):rep(100), command = log },
  { "a log of nanotron's with units that do not exist", status = 5, says = "", ("iteration: 60 / 99 | time_per_iteration_ms: 15Z | lm_loss: 1\n"):rep(100), command = log },
  { "a log of MaxText's with a step of a huge number", status = 5, says = "", "completed step: 99999999999999999999, seconds: 1.0, loss: 1\n", command = log },
  { "a log of ms-swift's that goes backwards", status = 5, says = "", ("{'loss': 1, 'train_speed(iter/s)': -1, 'global_step/max_steps': '0/0'}\n"):rep(100), command = log },
  { "a log of bars alone", status = 5, says = "", ("  1%|x| 1/99 [99:99<?, ?it/s]\r"):rep(10000), command = log },
  { "a log of bars of many totals", status = 5, says = "", (function() local t = {} for i = 1, 20000 do t[i] = "  1%|x| 1/" .. i .. " [00:01<?, ?it/s]\n" end return table.concat(t) end)(), command = log },
  { "a log of many lines", status = 5, says = "", ("{'loss': 1}\n"):rep(100000), command = log },
}

for _, entry in ipairs(list) do entry.status = entry.status or 2 end
return list
