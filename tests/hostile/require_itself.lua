-- broken "requires itself"
require "require_itself"
