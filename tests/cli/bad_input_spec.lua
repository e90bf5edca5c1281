-- SPDX-License-Identifier: Apache-2.0
-- Bad input through the program: one clear line on stderr (where, field, value, expected, nearest legal), exit 2, nothing on stdout.

local program = require "program"

local function with_directory(files, f)
  local directory = os.tmpname()
  os.remove(directory)
  assert(os.execute("mkdir -p " .. directory))
  for name, text in pairs(files) do
    local handle = assert(io.open(directory .. "/" .. name, "wb"))
    handle:write(text)
    handle:close()
  end
  local good, problem = pcall(f, directory)
  os.execute("rm -rf " .. directory)
  if not good then error(problem, 0) end
end

-- What `pipeplan plan ARGUMENTS` says, with that exit status (default 2); DIR in the arguments is a directory that holds the files.
local function complaint(arguments, files, status)
  local message
  with_directory(files or {}, function(directory)
    local result = program.run("plan " .. arguments:gsub("DIR", directory))
    assert.equal("", result.stdout)
    assert.equal(status or 2, result.status, result.stderr)
    assert.equal("\n", result.stderr:sub(-1))
    assert.is_nil(result.stderr:sub(1, -2):find("\n", 1, true), result.stderr)
    message = result.stderr:sub(1, -2):gsub(directory:gsub("%p", "%%%0"), "DIR")
  end)
  return message
end

-- The shipped headline spec with options on top.
local function headline(options, files)
  return complaint("examples/specs/deepseek-v3.json " .. options, files)
end

describe("bad input", function()
  it("without GPUs", function()
    assert.equal("pipeplan: command line: cluster.gpus is missing: expected GPUs of the training run (or option --gpus)",
                 complaint "--accelerator H100-SXM --model examples/models/llama-3.1-8b.json --tokens 2T")
  end)

  it("with zero, negative or fractional counts", function()
    local expected = 'expected a whole number of GPUs, at least 1 and at most 10000000, or "minimum"'
    assert.equal('pipeplan: command line: --gpus is "0": ' .. expected .. "; nearest: 1", headline "--gpus 0")
    assert.equal('pipeplan: command line: --gpus is "-8": ' .. expected .. "; nearest: 1", headline "--gpus=-8")
    assert.equal('pipeplan: command line: --gpus is "12.5": ' .. expected .. "; nearest: 13", headline "--gpus 12.5")
    assert.equal('pipeplan: command line: --pipeline is "0": expected a whole number of ranks, at least 1 and at most 10000000; nearest: 1',
                 headline "--pipeline 0")
  end)

  it("with counts beyond what the engine takes", function()
    assert.equal('pipeplan: command line: --virtual is "5000": expected a whole number, at least 1 and at most 1024; nearest: 1024',
                 headline "--virtual 5000")
    for _, option in ipairs { "--sequence_length 2147483647", "--micro_batch_size 2147483647 --global_batch_size 2147483647" } do
      local result = program.run("plan examples/specs/7b-fits-one-gpu.json " .. option)
      assert.is_nil(result.stderr:find("internal error", 1, true), result.stderr)
      assert.is_true(result.status <= 4, result.status)
    end
  end)

  it("with GPUs that a fixed layout does not divide", function()
    assert.equal("pipeplan: command line: --gpus is 2000: not divisible by the fixed layout expert 64 × pipeline 16 = 1024; nearest: 2048",
                 headline "--gpus 2000 --pipeline 16")
  end)

  it("with expert parallelism above the number of experts", function()
    assert.equal("pipeplan: command line: --expert is 512: the model has 256 experts; nearest: 256", headline "--expert 512")
  end)

  it("with tokens in words", function()
    assert.equal('pipeplan: command line: --tokens is "ten trillion": expected a number of tokens such as "14.8T"',
                 headline "--tokens 'ten trillion'")
  end)

  it("with microbatches that contradict the batch", function()
    assert.equal("pipeplan: command line: --microbatches is 100: microbatches 100 × microbatch size 1 × data 128 is 12800, " ..
                 "but the batch is 15360; nearest: 120", headline "--microbatches 100 --data 128")
  end)

  it("with a config.json that is none", function()
    local spec = '{"model": "config.json", "cluster": {"gpus": 8, "accelerator": "H100-SXM"}, "training": {"tokens": "1T"}}'
    assert.equal("pipeplan: DIR/config.json: holds [1,2]: expected the config.json of a model",
                 complaint("DIR/spec.json", { ["spec.json"] = spec, ["config.json"] = "[1, 2]" }))
    assert.equal("pipeplan: DIR/config.json:1:2: expected a key in double quotes, got 'h'",
                 complaint("DIR/spec.json", { ["spec.json"] = spec, ["config.json"] = "{hidden_size: 8}" }))
    assert.matches("^pipeplan: DIR/config%.json: not a config%.json of a language model",
                   complaint("DIR/spec.json", { ["spec.json"] = spec, ["config.json"] = '{"name": "package", "version": "1.0"}' }))
  end)

  it("with files that cannot be read", function()
    assert.equal("pipeplan: DIR/none.json: cannot be read: No such file or directory", complaint "DIR/none.json")
    assert.equal("pipeplan: DIR: cannot be read: Is a directory", complaint "DIR")
    assert.equal('pipeplan: command line: --model is "DIR/none.json": DIR/none.json cannot be read: No such file or directory',
                 headline "--model DIR/none.json")
  end)

  it("with a negative number as the word behind its option", function()
    for line, message in pairs {
      ["plan --gpus -1"] = 'command line: --gpus is "-1": expected a whole number of GPUs, at least 1 and at most 10000000, or "minimum"; nearest: 1',
      ["plan --gpus -inf"] = 'command line: --gpus is "-inf": expected a number of GPUs such as 2048, or "minimum"',
      ["simulate 1f1b --microbatches 4 --ranks -4"] = "--ranks must be an integer from 1 to 2147483647, got '-4'; nearest: 1",
      ["simulate 1f1b --microbatches 4 --ranks 4 --p2p -0.5"] = '--p2p: expected a time such as "10us", got -0.5: less than nothing',
      ["simulate 1f1b --microbatches 4 --ranks 4 --times -1,1,1"] = '--times: expected a time such as "10us", got -1: less than nothing',
      ["policy check --search -1"] = "--search must be an integer from 0 to 1000000, got '-1'; nearest: 0",
    } do
      local result = program.run(line)
      assert.same({ 2, "", "pipeplan: " .. message .. "\n" }, { result.status, result.stdout, result.stderr })
    end
  end)

  it("with a value that an option has no place for: what it may be, what it is, and the nearest", function()
    for line, message in pairs {
      ["plan --jsonl --jobs 0"] = "--jobs must be an integer from 1 to 256, got '0'; nearest: 1",
      ["plan examples/specs/mixtral-8x7b.json --shortlist 20"] = "--shortlist must be an integer from 2 to 16, got '20'; nearest: 16",
      ["plan examples/specs/mixtral-8x7b.json --shortlist many"] = "--shortlist must be an integer from 2 to 16, got 'many'",
      ["policy check --search 1e9"] = "--search must be an integer from 0 to 1000000, got '1e9'; nearest: 1000000",
      ["policy check --search 2.7"] = "--search must be an integer from 0 to 1000000, got '2.7'; nearest: 2",
      ["policy check --fail-on warn"] = "policy check: --fail-on must be one of note, warning, error, got 'warn', did you mean 'warning'?",
      ["policy check --fail-on="] = "policy check: --fail-on must be one of note, warning, error, got ''",
      ["lint spec.json --format=jsn --format text"] = "lint: --format must be one of text, json, sarif, github, got 'jsn', did you mean 'json'?",
    } do
      local result = program.run(line, "")
      assert.same({ 2, "", "pipeplan: " .. message .. "\n" }, { result.status, result.stdout, result.stderr }, line)
    end
  end)

  it("with JSON that lua-cjson would take without a word", function()
    for text, message in pairs {
      ['{"cluster": {"gpus": 8, "gpus": 16}}'] = '1:25: key "gpus" stands twice in one object (first in line 1, column 14)',
      ['{"cluster": {"gpus": NaN}}'] = "1:22: NaN is no JSON value",
      ['{"cluster": {"gpus": 0x10}}'] = "1:22: hexadecimal numbers are no JSON",
      ['{"cluster": {"gpus": 08}}'] = "1:22: a number may not start with 0",
      ['{"cluster": {"gpus": 1e999}}'] = "1:22: number too large",
      ['{"cluster": {}} x'] = "1:17: text after the end of the JSON value",
      ['{"cluster": {"gpus": 8,}}'] = "1:24: a comma before '}'",
      ['{"framework": "\xFF"}'] = "1:16: byte 0xFF is not valid UTF-8",
      ["\xEF\xBB\xBF{}"] = "1:1: starts with a byte order mark; save it as plain UTF-8",
      [string.rep("[", 200)] = "1:129: nested deeper than 128 levels",
    } do
      assert.equal("pipeplan: DIR/spec.json:" .. message, complaint("DIR/spec.json", { ["spec.json"] = text }))
    end
  end)

  it("in a policy: bad syntax, an unknown name, nothing stated, no file", function()
    local function policy(text, status)
      local message
      with_directory({ ["site.lua"] = text }, function(directory)
        local result = program.run("plan examples/specs/deepseek-v3.json --policy " .. directory .. "/site.lua")
        assert.equal("", result.stdout)
        assert.equal(status, result.status)
        message = result.stderr:gsub(directory:gsub("%p", "%%%0"), "DIR")
      end)
      return message
    end
    assert.matches("^pipeplan: DIR/site%.lua:1: .*near <eof>\n$", policy("reject { id = ", 6))
    assert.matches("^pipeplan: DIR/site%.lua:1: .*'gpuss', did you mean 'gpus'%?\n$",
                   policy('reject { id = "x", gpuss = 3, pipeline_parallel = over(4), message = "no" }', 6))
    assert.equal("pipeplan: DIR/site.lua: states nothing: no row, no rule, no set\n", policy("-- nothing yet\n", 5))
    assert.equal("pipeplan: /no/site.lua: cannot be read: No such file or directory",
                 complaint("examples/specs/deepseek-v3.json --policy /no/site.lua", {}, 6))
  end)

  it("with a field, an option or a name that does not exist", function()
    assert.equal("pipeplan: DIR/spec.json: cluster.gpu is no field of a spec, did you mean 'gpus'?",
                 complaint("DIR/spec.json", { ["spec.json"] = '{"cluster": {"gpu": 8}}' }))
    assert.matches("^pipeplan: plan: unknown option '%-%-gpu'", headline "--gpu 8")
    assert.matches('^pipeplan: command line: %-%-accelerator is "H100%-SMX": expected a name of the catalogue .*nearest: H100%-SXM$',
                   headline "--accelerator H100-SMX")
    assert.matches('^pipeplan: command line: %-%-fabric is "infinband": expected one of infiniband, .*; nearest: infiniband$',
                   headline "--fabric infinband")
  end)
end)

describe("a command that is none", function()
  it("is answered with the nearest one, or with all of them", function()
    assert.matches("no command 'plann', did you mean 'plan'?", program.run("plann").stderr, 1, true)
    assert.matches("no command 'frobnicate': expected one of ", program.run("frobnicate").stderr, 1, true)
  end)
end)
