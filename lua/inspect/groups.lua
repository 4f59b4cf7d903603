-- Counts the tasks of some groups: InspectionRole.groups, one step.
--
-- KEYS
--   1 groups
-- ARGV
--   1 groupPrefix
--   2 cursor: of SSCAN
--   3 count
-- Returns
--   the next cursor, '0' at the end, and name and size of each group

local reply = redis.call('SSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
local sizes = {}
for _, name in ipairs(reply[2]) do
  local size = redis.pcall('ZCARD', ARGV[1] .. name)
  sizes[#sizes + 1] = name
  sizes[#sizes + 1] = type(size) == 'number' and size or 0
end
return { reply[1], sizes }
