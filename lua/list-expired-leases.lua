-- Lists tasks whose lease has ended, oldest first: MaintenanceRole.listExpiredLeases.
-- Ids that cannot be recovered leave `lease` and `active`: dangling ones (with what is left of their hash), and those whose
-- task is in another state.
--
-- KEYS
--   1 lease
--   2 active
-- ARGV
--   1 taskPrefix
--   2 cutoff: seconds
--   3 limit
-- Returns
--   the number of ids removed, the tasks packed as [id, score, message, …], and how many leases ended soon after the cutoff, if there are tasks
--
-- Uses shared/spread.lua

local call, try = redis.call, redis.pcall
-- The leases of one server end within this time.
local SOON_SECONDS = 15

call('LLEN', KEYS[2])
local entries = call('ZRANGE', KEYS[1], '-inf', ARGV[2], 'BYSCORE', 'LIMIT', 0, ARGV[3], 'WITHSCORES')
local tasks, dangling, stubs = {}, {}, {}
for i = 1, #entries, 2 do
  local id = entries[i]
  local key = ARGV[1] .. id
  local fields = try('HMGET', key, 'msg', 'state')
  local message = fields[1]
  if message and fields[2] == 'active' then
    local n = #tasks
    tasks[n + 1], tasks[n + 2], tasks[n + 3] = id, entries[i + 1], message
  else
    dangling[#dangling + 1] = id
    if not fields.err and not message then stubs[#stubs + 1] = key end
  end
end

spread('ZREM', KEYS[1], dangling)
for i = 1, #dangling do
  call('LREM', KEYS[2], 0, dangling[i])
end
spread('DEL', nil, stubs)
local ending = #tasks > 0 and call('ZCOUNT', KEYS[1], '(' .. ARGV[2], ARGV[2] + SOON_SECONDS) or 0
return { #dangling, cmsgpack.pack(tasks), ending }
