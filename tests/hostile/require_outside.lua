-- broken "only the plain name of a policy file beside this one"
require "../../stdlib/init"
