-- Publishes a server, and which tasks it runs: MonitoringRole.writeServerState, one step.
--
-- KEYS
--   1 server
--   2 workers
-- ARGV
--   1 ttl: seconds
--   2 info
--   3 known: how many tasks must be published before the call; empty: all that are published are removed first
--   4 ended: the number of tasks that no longer run
--   5… their ids, then id and WorkerInfo of each task that has started
-- Returns
--   1, or 0 when not so many tasks are published: nothing was written
--
-- Uses shared/spread.lua

local call, try = redis.call, redis.pcall
local server, workers = KEYS[1], KEYS[2]
local ttl, info, known, ended = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])

if known == '' then
  call('DEL', workers)
elseif try('HLEN', workers) ~= tonumber(known) then
  return 0
end
call('SET', server, info, 'EX', ttl)
spread('HDEL', workers, ARGV, 5, 4 + ended)
spread('HSET', workers, ARGV, 5 + ended)
call('EXPIRE', workers, ttl)
return 1
