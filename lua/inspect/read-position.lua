-- Reads where a task is in its queue: ObstaclesRole.position.
--
-- KEYS
--   1 task
--   2 pending
--   3 paused
--   4 lease
--   5 retry
--   6 active
--   7… the waitlists in which it may be
-- ARGV
--   1 id
--   2 counted: how many pending tasks before it are counted
-- Returns
--   whether the queue is paused, lengths of `pending` and `active`, how many are claimed before it (-1: unknown), the score of
--   its lease ('' without one), the number of its waitlist in KEYS (0: none, -1: none of these) and how many are before it there

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
local waitlist, before = 0, 0
if due then
  local text = try('HGET', KEYS[1], 'waits')
  -- As in wake-waiting.lua: another time in `retry` says that it does not wait any more.
  if type(text) == 'string' and string.match(text, '^(%d+) ') == due then
    for i = 7, #KEYS do
      local rank = call('ZRANK', KEYS[i], id)
      if rank and waitlist == 0 then
        waitlist, before = i, rank
      end
    end
    if waitlist == 0 then waitlist = -1 end
  end
end
return { paused, pending, active, ahead, lease or '', waitlist, before }
