-- SPDX-License-Identifier: Apache-2.0
-- The program, the module and the library are built as one ships them: what readelf and objdump say of them. A sanitizer's build checks in its own way and
-- is left out.

local programs = { program = os.getenv "PIPEPLAN", module = os.getenv "PIPEPLAN_BUILD" .. "/pipeplan.so",
                   library = os.getenv "PIPEPLAN_BUILD" .. "/libpipeplan.so" }

local function output(command, path)
  local handle = assert(io.popen(string.format("LC_ALL=C %s '%s'", command, path)))
  local text = handle:read "a"
  assert(handle:close(), command)
  return text
end

if os.getenv "PIPEPLAN_PRELOAD" then
  print "# a sanitizer's build is not what ships: nothing to look at"
  describe("a sanitizer's build", function() pending "is not what ships" end)
  return
end

for name, path in pairs(programs) do
  describe("the " .. name, function()
    local headers, dynamic = output("readelf -hlW", path), output("readelf -dW", path)
    local symbols = output("readelf -W --dyn-syms", path)

    it("is loaded at a random address", function()
      assert.matches("Type: +DYN", headers)
      if name == "program" then assert.matches("FLAGS_1.-PIE", dynamic) end
    end)

    it("has its relocations done at the start and read-only from then on", function()
      assert.matches("GNU_RELRO", headers)
      assert.matches("FLAGS_1.-NOW", dynamic)
    end)

    it("has no stack that can be run", function()
      assert.equal("RW ", headers:match "GNU_STACK[ %dxa-f]+ (RW.)")
    end)

    it("has no segment that is both written and run", function()
      assert.is_nil(headers:match "LOAD[ %dxa-f]+ RWE")
    end)

    it("checks its stack frames and the bounds of what it copies and prints", function()
      assert.matches("UND __stack_chk_fail", symbols)
      assert.matches("UND __memcpy_chk", symbols)
      assert.matches("UND __snprintf_chk", symbols)
    end)

    it("names no folder of its own to load libraries from", function()
      assert.is_nil(dynamic:find "RPATH")
      assert.is_nil(dynamic:find "RUNPATH")
    end)

    it("needs the C library, the system's Lua where it brings no interpreter, and no other", function()
      local needed = {}
      for library in dynamic:gmatch "NEEDED.-%[(.-)%]" do
        if not library:match "^ld%-linux" then needed[#needed + 1] = library:match "^[%a%d]+%.%d+" or library:match "^%a+" end
      end
      table.sort(needed)
      assert.same(name == "module" and { "libc", "libm" } or { "libc", "liblua5.4", "libm" }, needed)
    end)

    if headers:find "X86%-64" then
      it("marks where indirect calls may land, and touches each page of a large stack frame", function()
        local code = output("objdump -d --no-show-raw-insn", path)
        local _, landings = code:gsub("endbr64", "")
        assert.is_true(landings > 300, tostring(landings))
        assert.is_truthy(code:find "or[qlb]? +%$0x0,%(%%rsp%)" or code:find "movq +%$0x0,%(%%rsp%)")
      end)
    else
      print "# indirect calls and large stack frames are looked at on x86-64 only"
    end
  end)
end
