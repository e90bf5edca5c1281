/* SPDX-License-Identifier: Apache-2.0 */
/*
** allow.c: the allow-list and the stubs. See allow.h.
** A name that stands in neither table does not exist for a policy. Before adding one, ask: can it run long without executing VM
** instructions, allocate outside the allocator, keep an error from reaching the host, reach another state, or differ between two runs?
*/
#include "host/allow.h"

const pp_allowed_name pp_allowed_names[] = {
  /* Lua's base library: short, and nothing that catches, loads or changes a metatable */
  { "assert",          PP_FROM_BASE,   "raises" },
  { "error",           PP_FROM_BASE,   "raises" },
  { "ipairs",          PP_FROM_BASE,   "one VM call a step; tables of policies have no metatables" },
  { "select",          PP_FROM_BASE,   "bounded by the stack" },
  { "type",            PP_FROM_BASE,   "constant time" },
  /* replaced, because Lua's own would differ between runs or do unbounded work */
  { "math.max",        PP_REPLACED,    "of numbers only" },
  { "math.min",        PP_REPLACED,    "of numbers only" },
  { "pairs",           PP_REPLACED,    "in sorted order" },
  { "require",         PP_REPLACED,    "only policy files beside the file" },
  { "tonumber",        PP_REPLACED,    "of at most 64 characters" },
  { "tostring",        PP_REPLACED,    "shows no addresses" },
  /* math without its random generator */
  { "math.abs",        PP_FROM_MATH,   "constant time" },
  { "math.ceil",       PP_FROM_MATH,   "constant time" },
  { "math.exp",        PP_FROM_MATH,   "constant time" },
  { "math.floor",      PP_FROM_MATH,   "constant time" },
  { "math.fmod",       PP_FROM_MATH,   "constant time" },
  { "math.huge",       PP_FROM_MATH,   "a number" },
  { "math.log",        PP_FROM_MATH,   "constant time" },
  { "math.maxinteger", PP_FROM_MATH,   "a number" },
  { "math.mininteger", PP_FROM_MATH,   "a number" },
  { "math.modf",       PP_FROM_MATH,   "constant time" },
  { "math.pi",         PP_FROM_MATH,   "a number" },
  { "math.sqrt",       PP_FROM_MATH,   "constant time" },
  { "math.tointeger",  PP_FROM_MATH,   "constant time" },
  { "math.type",       PP_FROM_MATH,   "constant time" },
  { "math.ult",        PP_FROM_MATH,   "constant time" },
  /* statements: recorded, not acted upon */
  { "change",          PP_VERB,        "changes a row or rule of an earlier layer" },
  { "disable",         PP_VERB,        "takes a row or rule out" },
  { "enable",          PP_VERB,        "brings back what an earlier layer disables" },
  { "invariant",       PP_VERB,        "what no planned result may satisfy" },
  { "kernel",          PP_VERB,        "which all-to-all kernel to recommend" },
  { "parameter",       PP_VERB,        "declares a number that rules refer to by name" },
  { "pin",             PP_VERB,        "the default policy that a site was written for" },
  { "prefer",          PP_VERB,        "decides among candidates that come close" },
  { "refuse",          PP_VERB,        "a refusal with a recommendation" },
  { "reject",          PP_VERB,        "a hard reject" },
  { "row",             PP_VERB,        "a row of the decision table" },
  { "set",             PP_VERB,        "changes parameters" },
  { "site",            PP_VERB,        "names the layer" },
  { "warn",            PP_VERB,        "a warning" },
  /* conditions */
  { "any",             PP_CONSTRUCTOR, "takes a condition away, in change" },
  { "at_least",        PP_CONSTRUCTOR, "a condition" },
  { "at_most",         PP_CONSTRUCTOR, "a condition" },
  { "between",         PP_CONSTRUCTOR, "a condition" },
  { "equal",           PP_CONSTRUCTOR, "a condition" },
  { "even",            PP_CONSTRUCTOR, "a condition" },
  { "multiple_of",     PP_CONSTRUCTOR, "a condition" },
  { "none_of",         PP_CONSTRUCTOR, "a condition" },
  { "not_multiple_of", PP_CONSTRUCTOR, "a condition" },
  { "odd",             PP_CONSTRUCTOR, "a condition" },
  { "over",            PP_CONSTRUCTOR, "a condition" },
  { "under",           PP_CONSTRUCTOR, "a condition" },
  /* the engine's arithmetic, for `when` functions */
  { "engine.bubble",   PP_FROM_ENGINE, "closed forms" },
  { "engine.comm",     PP_FROM_ENGINE, "seconds of a collective" },
  { "engine.cost",     PP_FROM_ENGINE, "seconds of a stage" },
  { "engine.memory",   PP_FROM_ENGINE, "bytes of a stage" },
  { "engine.model",    PP_FROM_ENGINE, "parameters and FLOPs of a shape" },
  { "engine.schedule", PP_FROM_ENGINE, "builds and simulates a schedule, charged by its actions" },
};
const size_t pp_allowed_count = sizeof pp_allowed_names / sizeof *pp_allowed_names;

const pp_blocked_name pp_blocked_names[] = {
  { "_G",             "a file's own names are `local`" },
  { "collectgarbage", "memory is the host's business" },
  { "coroutine",      "a rule is one function that returns true or false" },
  { "debug",          "nothing replaces it" },
  { "dofile",         "use require \"name\" for a policy file beside this one" },
  { "getmetatable",   "tables of policies are plain" },
  { "io",             "a policy reads only the fields of its record" },
  { "load",           "a policy is the text of its file" },
  { "loadfile",       "use require \"name\" for a policy file beside this one" },
  { "loadstring",     "a policy is the text of its file" },
  { "next",           "use pairs, which is sorted" },
  { "os",             "a policy reads only the fields of its record; dates are given with `expires`" },
  { "package",        "use require \"name\" for a policy file beside this one" },
  { "pcall",          "an error in a rule is reported, never hidden" },
  { "print",          "what a rule has to say is its message; under --debug it writes to standard error" },
  { "rawequal",       "use ==" },
  { "rawget",         "use t[key]" },
  { "rawlen",         "use #t" },
  { "rawset",         "use t[key] = value" },
  { "setmetatable",   "tables of policies are plain" },
  { "string",         "write texts as templates: \"M is {microbatches}\"; `..` joins" },
  { "table",          "write lists out, or fill them with t[#t + 1] = value" },
  { "unpack",         "index the list instead" },
  { "utf8",           "write texts as templates: \"M is {microbatches}\"" },
  { "xpcall",         "an error in a rule is reported, never hidden" },
};
const size_t pp_blocked_count = sizeof pp_blocked_names / sizeof *pp_blocked_names;
