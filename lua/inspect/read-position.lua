-- Reads where a task is in its queue: ObstaclesRole.position.
--
-- KEYS
--   1 task
--   2 pending
--   3 paused
--   4 lease
--   5 retry
--   6 active
-- ARGV
--   1 id
--   2 counted: how many pending tasks before it are counted
--   3 waitingPrefix: how the keys of waitlists begin
-- Returns
--   whether the queue is paused, lengths of `pending` and `active`, how many are claimed before it (-1: unknown), the score of
--   its lease ('' without one), its waitlist and how many are before it there (-1: it is in none)
--
-- Uses shared/hold.lua

local call, try = redis.call, redis.pcall
local id = ARGV[1]
local paused, pending, active = call('EXISTS', KEYS[3]), call('LLEN', KEYS[2]), call('LLEN', KEYS[6])
local lease, due = call('ZSCORE', KEYS[4], id), call('ZSCORE', KEYS[5], id)
local state = try('HGET', KEYS[1], 'state')
local ahead = -1
if state == 'pending' then
  local index = call('LPOS', KEYS[2], id, 'RANK', -1, 'MAXLEN', ARGV[2])
  if index then ahead = pending - 1 - index end
end
local since, waitlist = hold(KEYS[1], due)
local before = -1
if since then before = call('ZRANK', ARGV[3] .. waitlist, id) or 0 end
return { paused, pending, active, ahead, lease or '', waitlist or '', before }
