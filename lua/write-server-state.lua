-- Publishes a server and its running tasks: MonitoringRole.writeServerState.
--
-- KEYS
--   1 server
--   2 workers
-- ARGV
--   1 ttl: seconds
--   2 info
--   3… id and WorkerInfo of each running task
-- Returns
--   nothing
--
-- Uses shared/spread.lua

local workers = {}
for i = 3, #ARGV do
  workers[i - 2] = ARGV[i]
end
redis.call('SET', KEYS[1], ARGV[2], 'EX', ARGV[1])
redis.call('DEL', KEYS[2])
if #workers > 0 then
  spread('HSET', KEYS[2], workers)
  redis.call('EXPIRE', KEYS[2], ARGV[1])
end
return nil
