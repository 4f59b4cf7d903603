-- Starts runs of workflows, each all or nothing: WorkflowsRole.start. shared/runs.lua says what is stored.
--
-- KEYS
--   1 links
--   2 outbox
--   3 timers
--   4 waitingTasks
--   5 pending
--   6 scheduled
--   7 archived
--   8 completed
--   9 runs
--   10 running
--   11… the hash of each run
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 resent: '1' when an earlier call may have done this
--   5… per run: id, milliseconds, when it is due (seconds), how many arguments its fields are, its fields, how many steps begin, those, the later ones
-- Returns
--   the status of each run: 1 started, 0 there is one with this id; and the parcels, packed as in deliver.lua

-- A step that begins is the position of its message among the fields; when anything is special about it, then a space and JSON { queue } if it is
-- another one, else { processAt, uniqueKey, uniqueTtl, mark: its watcher }.
-- The later ones begin by the next deliveries, see shared/run-pages.lua: their names, a NUL behind each.

local call = redis.call
L.open(ARGV[1], ARGV[2], ARGV[3])
call('ZCARD', KEYS[9])
local HASHES = 10
for i = HASHES + 1, #KEYS do
  call('HLEN', KEYS[i])
end

local R, tasks, running = L.runs, {}, {}

local function prepare(id, started, first, text)
  local position, task = tonumber(text), {}
  local is_plain = position
  if not is_plain then
    local digits, options = string.match(text, '^(%d+) (.*)$')
    position, task = tonumber(digits), cjson.decode(options)
  end
  local at = first + position - 1
  local name, graph, message = string.sub(ARGV[at - 1], 3), ARGV[at - 2], ARGV[at]
  if task.queue then return L.offer_step(task.queue, { run = id, since = started, step = name }) end
  task.id = R.task_of(id, name)
  if is_plain then
    task.link = L.step_link(id, name, L.hint(ARGV[first + 1], ARGV[at - 4], L.neighbours(graph)))
  else
    task.watchers = { { k = 'r', to = L.place, run = id, since = started, step = name }, task.mark }
    task.mark = nil
  end
  task.message, task.run, task.step = message, id, name
  tasks[#tasks + 1] = task
end

local statuses, at = {}, 5
for i = HASHES + 1, #KEYS do
  local key, id, started, due = KEYS[i], unpack(ARGV, at, at + 2)
  local first = at + 4
  local ready_at = first + tonumber(ARGV[at + 3])
  local ready = tonumber(ARGV[ready_at])
  local later = ARGV[ready_at + 1 + ready]
  at = ready_at + 2 + ready
  statuses[i - HASHES] = 0
  if call('EXISTS', key) == 0 then
    statuses[i - HASHES] = 1
    running[#running + 1], running[#running + 2] = R.task_of(id, ''), id
    for from = first, ready_at - 1, 1000 do
      call('HSET', key, unpack(ARGV, from, math.min(from + 999, ready_at - 1)))
    end
    call('ZADD', KEYS[9], started, id)
    call('ZADD', L.timers, due, 'run ' .. id)
    for n = 1, ready do
      prepare(id, started, first, ARGV[ready_at + n])
    end
    if later ~= '' then L.defer('begin ' .. id .. ' ' .. started, { kind = 'begin', what = 'first', run = id, since = started }, later) end
  elseif ARGV[4] == '1' and call('ZSCORE', KEYS[9], id) == started then
    statuses[i - HASHES] = 1 -- an earlier call of this sender has the same time
  end
end
for from = 1, #running, 1000 do
  call('HSET', KEYS[10], unpack(running, from, math.min(from + 999, #running)))
  L.has_runs = true
end
L.find_absent(tasks)
for i = 1, #tasks do
  local task = tasks[i]
  local status = L.create(task)
  if status ~= 'enqueued' then R.post_end(task.run, task.step, false, R.REFUSED[status], '', L.millis) end
end
L.work()
return { statuses, L.parcels() }
