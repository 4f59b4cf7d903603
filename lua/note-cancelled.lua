-- Notes in which queues servers have acted on cancellations: CancellationRole.noteCancelled.
--
-- KEYS
--   1 cancellations
--   2 cancellationDetails
-- ARGV
--   1… id, at (milliseconds) and queue of each
-- Returns
--   how many were noted: not those without a record, or with a later one

local call = redis.call
local noted = 0
call('ZCARD', KEYS[1])
for i = 1, #ARGV, 3 do
  local id = ARGV[i]
  local at, text = call('ZSCORE', KEYS[1], id), call('HGET', KEYS[2], id)
  local read, details = pcall(cjson.decode, text or '')
  if at and read and type(details) == 'table' and tonumber(at) == tonumber(ARGV[i + 1]) then
    if type(details.acted) ~= 'table' then details.acted = {} end
    table.insert(details.acted, ARGV[i + 2])
    call('HSET', KEYS[2], id, cjson.encode(details))
    noted = noted + 1
  end
end
return noted
