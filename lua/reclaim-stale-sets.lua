-- Puts tasks of a set whose deadline has passed back into their group: GroupsRole.reclaimStaleSets, one step.
-- A set that is larger than the limit takes several steps; from the first on its claim is lost.
--
-- KEYS
--   1 aggregationSets
--   2 groups
-- ARGV
--   1 taskPrefix
--   2 groupPrefix
--   3 now: seconds
--   4 limit: tasks
-- Returns
--   how many tasks went back, and 1 when more may follow
--
-- Uses shared/spread.lua

local call, try = redis.call, redis.pcall

call('SCARD', KEYS[2])
local set = call('ZRANGE', KEYS[1], '-inf', ARGV[3], 'BYSCORE', 'LIMIT', 0, 1)[1]
if not set then return { 0, 0 } end

-- The name of the set is data: the group is the text between the prefix and the last colon.
local prefix, last = ARGV[2], string.match(set, '^.*():')
local size = 0
if last and last > #prefix and string.sub(set, 1, #prefix) == prefix then size = try('ZCARD', set) end
if type(size) ~= 'number' or size == 0 then
  call('ZREM', KEYS[1], set)
  return { 0, 1 }
end

local group, name = string.sub(set, 1, last - 1), string.sub(set, #prefix + 1, last - 1)
local entries = call('ZRANGE', set, 0, ARGV[4] - 1, 'WITHSCORES')
local ids, back, stubs = {}, {}, {}
for i = 1, #entries, 2 do
  local id = entries[i]
  local found = try('HEXISTS', ARGV[1] .. id, 'msg')
  ids[#ids + 1] = id
  if found == 1 then
    back[#back + 1] = entries[i + 1]
    back[#back + 1] = id
  elseif found == 0 then
    stubs[#stubs + 1] = ARGV[1] .. id
  end
end
if type(try('ZCARD', group)) ~= 'number' then
  -- The key of the group holds another type. The tasks stay in their set, and are tried again in an hour.
  call('ZADD', KEYS[1], ARGV[3] + 3600, set)
  return { 0, 1 }
end
spread('ZADD', group, back)
if #back > 0 then call('SADD', KEYS[2], name) end
spread('DEL', nil, stubs)
spread('ZREM', set, ids)
if size > #ids then call('ZADD', KEYS[1], 0, set) else call('ZREM', KEYS[1], set) end
return { #back / 2, 1 }
