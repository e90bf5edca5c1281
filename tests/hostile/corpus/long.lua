-- long.lua: files that hold much of one thing, for readers whose time or memory grows faster than what they read; and launch configurations
-- that expand. Each { name, status =, says =, text, command = }: FILE in the command is the text. Where no status stands it is 2.

local lint, yaml = "lint FILE.sh", "lint FILE.yaml"
local check = "policy check --policy FILE.lua"
local links = "plan examples/specs/mixtral-8x7b.json --measured FILE"
local plan = "plan FILE.json"

local program = "\ntorchrun --nproc_per_node 8 pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32\n"
local function script(text) return text .. program end
local spaces, word = (" "):rep(200000), ("a"):rep(500000)

-- Lines of a log that are as long as any that is read; and inventories.
local log, found = "monitor tests/fuzz/seeds/plan.json FILE", "plan --inventory FILE --per_gpu 400Gbps --tokens 2T --model examples/models/tiny.json"
local function lines(before, unit, after, count) return (before .. unit:rep(65000 // #unit) .. (after or "") .. "\n"):rep(count or 4) end

local function counted(from, to, template)
  local parts = {}
  for i = from, to do parts[#parts + 1] = (template:gsub("#", i):gsub("@", i - 1)) end
  return table.concat(parts)
end

local shared_maps = "a0: &a0 {}\n" .. counted(1, 40, "a#: &a# {p: *a@, q: *a@}\n")

local list = {
  -- shell scripts
  { "a case of forty stars", status = 1, says = "--max-position-embeddings", lint,
    script("X=" .. ("a"):rep(190) .. "\ncase \"$X\" in\n" .. ("*a"):rep(40) .. "*b) Y=1;;\nesac\n") },
  { "a test of a hundred thousand words", status = 1, says = "--max-position-embeddings", lint,
    script("if [ " .. ("1 -a "):rep(100000) .. "1 ]; then Y=1; fi\n") },
  { "a text that rests on fifty thousand names", says = "expands to more than", lint,
    script("X=" .. counted(1, 50000, "${A#:-1}") .. "\nY=\"$X$X$X$X\"\n") },
  { "a text that grows by one", status = 1, says = "--max-position-embeddings", lint, script("A=x\n" .. ("A+=y\n"):rep(50000)) },
  { "a text that doubles", says = "expands to more than", lint, script("A=aaaaaaaaaa\n" .. ("A=$A$A\n"):rep(60)) },
  { "a function that calls itself twice", status = 1, says = "--max-position-embeddings", lint, script("f() { f; f; }\nf\n") },
  { "a word of half a megabyte before a slash", status = 1, says = "--max-position-embeddings", lint,
    word .. "/ x " .. word .. "/ pretrain_gpt.py --num-layers 32 --hidden-size 4096 --num-attention-heads 32\n" },
  { "dashes", says = "no argument of a framework", lint, ("-"):rep(1000000) },
  { "a block of arguments in which a line is one word, and one is spaces", status = 0, says = "", lint,
    "--- arguments ---\n" .. word .. "\n  x ....... " .. spaces .. "y\n--- end of arguments ---\n" },
  { "flags that are no numbers a machine has", status = 1, says = "--tensor-model-parallel-size", lint,
    "torchrun pretrain_gpt.py --tensor-model-parallel-size 9223372036854775807 --pipeline-model-parallel-size -1 --num-layers 1e308 "
    .. "--hidden-size 0x10 --seq-length nan --micro-batch-size 0 --global-batch-size -0\n" },
  { "flags of controls and of a text that turns around", status = 1, says = "\\x1b", lint,
    "torchrun pretrain_gpt.py --num-layers '\27[31m' --hidden-size '\u{202e}8' --seq-length '\u{9b}2J'\n" },
  -- YAML
  { "maps that name a map twice, forty times over", says = "more than 20000 values", yaml, shared_maps .. "system: *a40\nmodel: {num_layers: 4}\n" },
  { "a list that twenty thousand keys name", says = "more than 20000 values", yaml,
    "l: &l [" .. ("1,"):rep(50000) .. "1]\nsystem: {a: 1}\nmodel:\n" .. counted(1, 20000, "  k#: *l\n") },
  { "a value of spaces", status = 0, says = "", yaml, 'system: {a: 1}\nmodel:\n  num_layers: "${multiply:1' .. spaces .. 'x,2}"\n' },
  { "values that name two values each", status = { 0, 1 }, says = "", yaml,
    "system: {a: 1}\nmodel:\n" .. counted(1, 60, "  k#: ${model.k@}${model.k@}\n") .. "  k0: x\n" },
  { "GPUs that no cluster has", status = 0, says = "", yaml, "experiment:\n  runner: {nnodes: 9223372036854775807, nproc_per_node: 9223372036854775807}\n"
    .. "train:\n  system: {tensor_model_parallel_size: 2}\n  model: {num_layers: 4}\n" },
  { "a configuration of DeepSpeed that begins again and again", says = "no ':' behind the key zero_optimization", "lint FILE.json",
    '{"train_batch_size": 1, ' .. ('"zero_optimization" '):rep(50000) .. "}" },
  -- policies
  { "a suppression that goes on with spaces", status = { 0, 1 }, says = "", check, "-- check: ignore" .. spaces .. "!\nset { small_run_gpus = 100 }" },
  { "a message of spaces", status = 0, says = "", "policy show --policy FILE.lua",
    'warn { id = "x", gpus = over(3), message = "m' .. spaces .. 'x" }' },
  { "a message of a megabyte that is one word", status = 1, says = "", "plan examples/specs/rules/too_deep.json --policy FILE.lua",
    'local text = "a" for i = 1, 20 do text = text .. text end reject { id = "x", gpus = over(1), message = text }' },
  { "rows that have a limit each", status = 1, says = "different conditions", "policy check --no-witnesses --policy FILE.lua",
    'for i = 1, 1900 do row { id = "r" .. i, gpus = over(2 * i), try = { "1f1b" } } end' },
  -- measured links
  { "a matrix of one row again and again", says = "none of nccl-tests output", links, ("GPU0 \n"):rep(20000) },
  { "a test of a long name", says = "", links, "# " .. word .. " x_perf\n#       size         count      type   redop    root     time   algbw   busbw\n" },
  { "a matrix of one line", says = "none of nccl-tests output", links, ("GPU0 "):rep(200000) },
  -- logs
  { "a bracket and digits, which are no rank of mpirun", status = 5, says = "", log, lines("[", "1") },
  { "a process of Ray whose number does not end", status = 5, says = "", log, lines("(TaskRunner pid=", "1") },
  { "a time that does not end", status = 5, says = "", log, lines("2026-11-27T10:15:02", "1") },
  { "a bar whose rate does not end", status = 5, says = "", log, lines("  3%|x| 30/1000 [04:06<", "1") },
  { "a mesh of letters", status = 5, says = "", log, lines("Building device mesh with parallelism: ", "pp") },
  { "a rate of torchtune's again and again", status = 5, says = "", log, lines("Step 1 | ", "tokens_per_second_per_gpu:", "", 60) },
  { "each thing that a line may hold", status = 5, says = "", log,
    lines("", "1", "", 1) .. lines("", "a", "", 1) .. lines("", " ", "x", 1) .. lines("", ",", "", 1) .. lines("", "=", "", 1) .. lines("", "[", "", 1)
    .. lines("", "{", "", 1) .. lines("", "'", "", 1) .. lines("", "|", "", 1) .. lines("", "\27[", "", 1) .. lines("", "1:", "", 1) },
  -- inventories
  { "a list of GPUs with a line of spaces", status = 1, says = "", found,
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n" .. lines("", " ", "x", 1) },
  { "a list of GPUs with a line that begins again and again", status = 1, says = "", found,
    "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-1)\n" .. lines("", "GPU 1: ", "", 20) },
  { "a node whose power goes up and up", status = 1, says = "", found,
    "NODELIST GRES STATE\n" .. lines("gpu1 gpu:h100:8 ", "POWER", "", 20) },
  -- specs
  { "a list of spaces", says = "training.recompute", plan, string.format([[{ "cluster": { "gpus": 16, "accelerator": "H100-SXM" },
    "model": { "architecture": "dense", "total": "9B", "layers": 32 }, "training": { "tokens": "2T", "recompute": "x%sy" } }]], spaces:rep(4)) },
  { "a quantity of spaces", says = "cluster.gpus", plan, string.format([[{ "cluster": { "gpus": "1 x%sy", "accelerator": "H100-SXM" },
    "model": { "architecture": "dense", "total": "9B", "layers": 32 }, "training": { "tokens": "2T" } }]], spaces:rep(4)) },
}

for _, entry in ipairs(list) do
  entry.command, entry[2] = entry[2], entry[3]
  entry.status = entry.status or 2
end
return list
