-- Reads a task: InspectionRole.getTask.
--
-- KEYS
--   1 task
--   2 scheduled
--   3 retry
--   4 waitingTasks
-- ARGV
--   1 id
--   2 waitingGroup: the group of the tasks that wait for others
--   3 fairGroup: how the groups begin that are the lines of a fair queue
--   4 chunkBytes: of what its handler has emitted, the last pieces with so many bytes; empty: nothing of what it has said
-- Returns
--   message, state, result and score, each '' when it is missing, whether there is a result, since when it is pending, or held
--   (nanoseconds, or ''), the waitlist of one that is held, and what its handler has said: an array, empty when there is nothing, else
--   progress, the heads of log and chunks ('' when they are missing), the pieces of both (see write-notes.lua); the state of a task that waits for others is 'waiting', of one in a line
--   'pending', of one in a waitlist 'held'; nothing without a message
--
-- Uses shared/hold.lua

local fields = redis.call(
  'HMGET', KEYS[1], 'msg', 'state', 'result', 'pending_since', 'group', 'note:progress', 'note:log', 'note:chunk'
)
local message, state, result, since, group, progress, log, chunk = unpack(fields)
local held_by
if not message then return {} end
local score
if state == 'scheduled' then score = redis.call('ZSCORE', KEYS[2], ARGV[1]) end
if state == 'aggregating' and group == ARGV[2] then
  state, score = 'waiting', redis.call('ZSCORE', KEYS[4], ARGV[1])
end
if state == 'aggregating' and group and string.sub(group, 1, #ARGV[3]) == ARGV[3] then state = 'pending' end
if state == 'retry' then
  score = redis.call('ZSCORE', KEYS[3], ARGV[1])
  local held_since, by = hold(KEYS[1], score)
  if held_since then
    state, since, held_by = 'held', held_since, by
  end
end

-- The last pieces of a kind, in order, as long as they have no more bytes; but always one.
local function pieces(kind, head, most)
  local first, next = string.match(head or '', '^(%d+) (%d+)')
  local found, bytes = {}, 0
  for n = tonumber(next or 0) - 1, tonumber(first or 0), -1 do
    local piece = redis.call('HGET', KEYS[1], 'note:' .. kind .. '#' .. n) or ''
    bytes = bytes + #piece
    if bytes > most and #found > 0 then break end
    table.insert(found, 1, piece)
  end
  return found
end

local said = {}
if ARGV[4] ~= '' and (progress or log or chunk) then
  local pieces_of = { pieces('log', log, math.huge), pieces('chunk', chunk, tonumber(ARGV[4])) }
  said = { progress or '', log or '', chunk or '', pieces_of[1], pieces_of[2] }
end
return { message, state or '', result or '', score or '', result and 1 or 0, since or '', held_by or '', said }
