-- Adds steps to a run: WorkflowsRole.grow. shared/runs.lua says what is stored.
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
--   9 run
-- ARGV
--   1 taskPrefix
--   2 now: seconds
--   3 nowNanos
--   4 run: its id
--   5… per step: its name, its flags (see R.new_step), JSON of what is special about it, its message, JSON list of the steps before it
-- Returns
--   0 added, 1 missing, 2 ended, 3 unknown step before it, 4 the name is taken; and the parcels, packed as in deliver.lua

local ADDED, MISSING, ENDED, UNKNOWN, TAKEN = 0, 1, 2, 3, 4
local call = redis.call
L.open(ARGV[1], ARGV[2], ARGV[3])
call('HLEN', KEYS[9])

local R, id = L.runs, ARGV[4]
local steps, is_new, names, twice = {}, {}, {}, false
for i = 5, #ARGV, 5 do
  local name, flags, graph, message, after = unpack(ARGV, i, i + 4)
  steps[#steps + 1] = { name = name, flags = flags, graph = graph, message = message, after = after ~= '' and cjson.decode(after) or {} }
  twice = twice or is_new[name]
  is_new[name], names[#names + 1] = true, name
end
local before = {}
for _, step in ipairs(steps) do
  for _, name in ipairs(step.after) do
    if not is_new[name] then before[#before + 1] = name end
  end
end

local function grow()
  local run = R.load(id, names)
  if not run then return MISSING end
  if run.state ~= 'r' then return ENDED end
  if twice then return TAKEN end
  if #steps == 0 then return ADDED end
  for _, name in ipairs(names) do
    if run.steps[name] then return TAKEN end
  end
  R.load(id, before)
  for _, name in ipairs(before) do
    if not run.steps[name] then return UNKNOWN end
  end

  local following = {}
  for _, step in ipairs(steps) do
    for _, name in ipairs(step.after) do
      following[name] = following[name] or not is_new[name] and R.following(run.steps[name]) or {}
      table.insert(following[name], step.name)
    end
  end
  for i, step in ipairs(steps) do
    local before, json = string.match(step.graph, '^(.-)({.*)$')
    local graph = cjson.decode(json)
    graph.n = run.total + i - 1
    local d = R.pack_graph(following[step.name] or {}, before .. cjson.encode(graph))
    local new = R.new_step(step.name, step.flags, #step.after, d)
    run.steps[step.name], new.v = new, step.message
    R.set(run, 'd:' .. step.name, d)
    R.set(run, 'v:' .. step.name, step.message)
    R.change(run, step.name, new)
  end
  run.total, run.open = run.total + #steps, run.open + #steps
  for name, names in pairs(following) do
    if not is_new[name] then R.set_following(run, name, names) end
  end
  for _, step in ipairs(steps) do
    for _, name in ipairs(step.after) do
      if not is_new[name] then R.tell(run, step.name, 'open', R.outcome(run.steps[name])) end
    end
    R.decide(run, step.name)
  end
  R.propagate(run)
  R.touch(run)
  return ADDED
end

local status = grow()
L.work()
return { status, L.parcels() }
