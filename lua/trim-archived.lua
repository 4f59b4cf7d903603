-- Deletes archived tasks that are too old or too many, oldest first, with the locks they hold: MaintenanceRole.trimArchived,
-- one step. It also follows each archiving.
--
-- KEYS
--   1 archived
-- ARGV
--   1 taskPrefix
--   2 cutoff: seconds; tasks archived then or before are too old
--   3 keep: how many are kept
--   4 limit: how many are checked
--   5… ids to spare
-- Returns
--   how many were deleted
--
-- Uses shared/spread.lua

local call, try = redis.call, redis.pcall

local spared = {}
for i = 5, #ARGV do
  spared[ARGV[i]] = true
end
local old, surplus = call('ZCOUNT', KEYS[1], '-inf', ARGV[2]), call('ZCARD', KEYS[1]) - tonumber(ARGV[3])
local number = math.min(math.max(old, surplus), tonumber(ARGV[4]))
if number <= 0 then return 0 end

local ids, keys, locks = {}, {}, {}
for _, id in ipairs(call('ZRANGE', KEYS[1], 0, number - 1)) do
  if not spared[id] then
    local key = ARGV[1] .. id
    ids[#ids + 1], keys[#keys + 1] = id, key
    local lock = try('HGET', key, 'unique_key')
    -- The name of the lock comes from the hash: a wrong one must not stop the trimming.
    if type(lock) == 'string' and lock ~= '' and try('GET', lock) == id then locks[#locks + 1] = lock end
  end
end
spread('DEL', nil, locks)
spread('DEL', nil, keys)
spread('ZREM', KEYS[1], ids)
return #ids
