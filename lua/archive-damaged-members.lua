-- Archives members of a claimed set as they are: GroupsRole.archiveDamagedMembers.
--
-- KEYS
--   1 aggregationSets
--   2 aggregationSet
--   3 archived
-- ARGV
--   1 taskPrefix
--   2 setDeadline: seconds; while `aggregationSets` has it, the set is the caller's
--   3 now: seconds
--   4… the ids
-- Returns
--   how many were archived
--
-- Uses shared/spread.lua

local call, try = redis.call, redis.pcall

call('ZCARD', KEYS[3])
if tonumber(call('ZSCORE', KEYS[1], KEYS[2])) ~= tonumber(ARGV[2]) then return 0 end
local ids, archived = {}, {}
for i = 4, #ARGV do
  local id = ARGV[i]
  if call('ZSCORE', KEYS[2], id) then
    ids[#ids + 1] = id
    if try('HEXISTS', ARGV[1] .. id, 'msg') == 1 then
      archived[#archived + 1] = ARGV[3]
      archived[#archived + 1] = id
    end
  end
end
spread('ZADD', KEYS[3], archived)
spread('ZREM', KEYS[2], ids)
for i = 2, #archived, 2 do
  call('HSET', ARGV[1] .. archived[i], 'state', 'archived')
end
return #archived / 2
