-- Makes the list of groups agree with the tasks that wait in them: GroupsRole.repairGroups, some groups.
--
-- KEYS
--   1 aggregationSets
--   2 groups
--   3… keys of groups, and of aggregation sets, which are left alone
-- ARGV
--   1 groupPrefix
-- Returns
--   how many names were added, and how many removed

local call, try = redis.call, redis.pcall

call('ZCARD', KEYS[1])
call('SCARD', KEYS[2])
local added, removed = 0, 0
for i = 3, #KEYS do
  local name, size = string.sub(KEYS[i], #ARGV[1] + 1), try('ZCARD', KEYS[i])
  if size == 0 then
    removed = removed + call('SREM', KEYS[2], name)
  elseif type(size) == 'number' and not call('ZSCORE', KEYS[1], KEYS[i]) then
    added = added + call('SADD', KEYS[2], name)
  end
end
return { added, removed }
