-- Steps that succeed: part of links.lua, behind run-ends.lua. Most ends are the first success of a step of this place, whose link says
-- which steps come after it. Then all that changes is known from few fields of the run, and nothing of it is kept in tables. Whatever
-- else holds is left to run-steps.lua.
do
  local call, try = redis.call, redis.pcall
  local byte, find, sub = string.byte, string.find, string.sub
  local pack, unpack_bytes = struct.pack, struct.unpack
  local R = L.runs
  local STEP_SIZE, PLAIN = R.STEP_SIZE, R.PLAIN
  -- Where the counts have the steps that have failed, and when the run has started and how many steps it has.
  local FAILED_AT, STARTED_AT = 10, 26
  -- Where STEP of runs.lua has the policy, the flags, when it was ready, and how many steps before it have not ended and have failed;
  -- these: one, and none.
  local POLICY_AT, FLAGS_AT, READY_END, OPEN_AT, LAST_OPEN = 10, 11, 19, 20, '\1' .. string.rep('\0', 7)
  -- Where L.hint has what STEP has of this step, and the names.
  local HINT_STEP, HINT_NAMES = 13, 23
  local RUNNING, READY, WAITING = byte('r'), byte('r'), byte('w')
  -- What STEP ends with, of a step that waits for none; what the counts have of failed steps and of the end, while there are none.
  local WAITS_FOR_NONE, NONE = string.rep('\0', 8), string.rep('\0', 16)
  -- How many ends of one run are dealt with at once.
  local MOST = 400
  -- L.hint is no longer than 255 bytes.
  local LONGEST_NAMES = 232

  -- What STEP of runs.lua begins with: succeeded now, without and with a result, ready; and when it is ready: now.
  local succeeded, with_result, ready, since

  local function prepare()
    if succeeded then return end
    since = pack('<d', L.millis)
    succeeded, with_result, ready = 's' .. since, 'S' .. since, 'r' .. string.rep('\0', 8)
  end

  -- Steps that begin, as L.create_plain takes them: with run and step; and how many values these are.
  local begun, length = {}, 0

  -- Lets a step begin whose task is one of this place with nothing special. `hint`: L.hint.
  function L.begin_plain(run, step, id, message, hint)
    local list, n = begun, length
    list[n + 1], list[n + 2], list[n + 3], list[n + 4], list[n + 5] = id, L.step_link(run, step, hint), message, run, step
    length = n + 5
  end

  local function refuse(run, step, status)
    R.post_end(run, step, false, R.REFUSED[status] or R.DAMAGED)
  end

  -- Creates the tasks of steps that begin. One that cannot be created has failed.
  function L.create_begun()
    if length == 0 then return end
    local list, n = begun, length
    begun, length = {}, 0
    L.create_plain(list, n, refuse)
  end

  -- What the link of a step says of its run, of the step and of those after it: when the run has started and how many steps it has, as the
  -- counts have it; policy, flags and when it was ready, as the step has it; and what L.names_after returns.
  function L.hint(counts, step, names)
    return sub(counts, STARTED_AT) .. sub(step, POLICY_AT, READY_END) .. names
  end

  -- A NUL and the names of the steps after one, by `d` of runs.lua; empty when they are many. A name with a brace is cut, and leads to no step.
  function L.names_after(d)
    local start = find(d, '{', 1, true)
    return start and start <= LONGEST_NAMES + 1 and '\0' .. sub(d, 1, start - 1) or ''
  end

  -- Adds to `fields` those of the steps after the ended ones. Returns their names, how many of the ended ones are before each, and
  -- what the counts end with; nil when the links differ in that.
  local function add_following(fields, list)
    local names, counts, n, rest = { nil, nil }, {}, #fields, nil
    local i, size = 3, #list
    while i < size do
      local hint, times, before = list[i], 0, rest
      repeat
        times, i = times + 1, i + 3
      until list[i] ~= hint
      rest = sub(hint, 1, HINT_STEP - 1)
      if #hint < HINT_NAMES or before and before ~= rest then return nil end
      local at = HINT_NAMES
      local stop = find(hint, '\0', at + 1, true)
      while stop do
        local name = sub(hint, at + 1, stop - 1)
        local count = counts[name]
        if not count then
          names[#names + 1] = name
          fields[n + 1], fields[n + 2] = 's:' .. name, 'v:' .. name
          n = n + 2
        end
        counts[name] = (count or 0) + times
        at = stop
        stop = find(hint, '\0', at + 1, true)
      end
    end
    return names, counts, rest
  end

  -- The id of the task of a step, by that of the task of another step of the run.
  local function task_beside(task, other, name)
    return sub(task, 1, #task - #other) .. (find(name, '/', 1, true) and string.gsub(name, '/', '~') or name)
  end

  -- What apply does, when one step has ended and one comes after it, as in a chain: the same without a table. Returns nil, and has
  -- written nothing, when it is not that simple.
  local function apply_one(id, task, step, hint, result)
    if find(hint, '\0', HINT_NAMES + 1, true) ~= #hint then return nil end
    local key, name = L.base .. 'run:' .. id, sub(hint, HINT_NAMES + 1, -2)
    local after = 's:' .. name
    local values = try('HMGET', key, 'c', after, 'v:' .. name)
    if values.err then return false end
    local c, waiting, message = values[1], values[2], values[3]
    local rest = sub(hint, 1, HINT_STEP - 1)
    if not c or byte(c) ~= RUNNING or sub(c, STARTED_AT) ~= rest then return false end
    if sub(c, FAILED_AT, STARTED_AT - 1) ~= NONE then return nil end
    if not waiting or #waiting < STEP_SIZE or byte(waiting) ~= WAITING then return false end
    local open, begun = unpack_bytes('<I4I4', c, 2)
    if begun < 1 or open < begun then return false end
    local link
    if sub(waiting, OPEN_AT, STEP_SIZE) == LAST_OPEN then
      if not message or byte(waiting, FLAGS_AT) < PLAIN then return false end
      local how = sub(waiting, POLICY_AT, FLAGS_AT)
      link = rest .. how .. since .. sub(waiting, STEP_SIZE + 1)
      waiting = ready .. how .. since .. WAITS_FOR_NONE
    else
      local waits, bad = unpack_bytes('<I4I4', waiting, OPEN_AT)
      if waits < 2 then return false end
      if begun < 2 then return nil end
      waiting, begun = sub(waiting, 1, OPEN_AT - 1) .. pack('<I4I4', waits - 1, bad) .. sub(waiting, STEP_SIZE + 1), begun - 1
    end
    local ended = (result == '' and succeeded or with_result) .. sub(hint, HINT_STEP, HINT_NAMES - 1) .. WAITS_FOR_NONE
    call('HSET', key, 'c', pack('<c1I4I4', 'r', open - 1, begun) .. NONE .. rest, 's:' .. step, ended, 'v:' .. step, result, after, waiting)
    if link then L.begin_plain(id, name, task_beside(task, step, name), message, link) end
    return true
  end

  -- Whether these steps are ready. Only where a step of the run has failed, somebody may have damaged one that still has a task.
  local function are_ready(key, list)
    local fields = {}
    for i = 2, #list, 3 do
      fields[#fields + 1] = 's:' .. list[i]
    end
    local steps = call('HMGET', key, unpack(fields))
    for i = 1, #steps do
      if not steps[i] or #steps[i] ~= STEP_SIZE or byte(steps[i]) ~= READY then return false end
    end
    return true
  end

  -- Returns false, and has written nothing, when this is not all there is to it.
  local function apply(id, list)
    local ended = (#list - 1) / 3
    if ended > MOST or rawget(R, 'is_read') and R.is_read(id) then return false end
    if ended == 1 then
      local done = apply_one(id, list[1], list[2], list[3], list[4])
      if done ~= nil then return done end
    end
    local key, fields = L.base .. 'run:' .. id, { 'c', nil, nil }
    local names, counts, rest = add_following(fields, list)
    local values = names and #fields <= 2 * MOST and try('HMGET', key, unpack(fields))
    if not values or values.err then return false end
    local c = values[1]
    if not c or byte(c) ~= RUNNING then return false end
    if sub(c, STARTED_AT) ~= rest then return false end
    local failed = sub(c, FAILED_AT, STARTED_AT - 1)
    if failed ~= NONE and not are_ready(key, list) then return false end
    local open, begun = unpack_bytes('<I4I4', c, 2)
    if begun < ended or open < begun then return false end

    local set, n = { nil, nil, nil, nil, nil, nil, nil, nil }, 0
    local known, without, with
    for i = 2, #list, 3 do
      local step, hint, result = list[i], list[i + 1], list[i + 2]
      if hint ~= known then
        known, with = hint, sub(hint, HINT_STEP, HINT_NAMES - 1) .. WAITS_FOR_NONE
        without, with = succeeded .. with, with_result .. with
      end
      set[n + 1], set[n + 2] = 's:' .. step, result == '' and without or with
      set[n + 3], set[n + 4] = 'v:' .. step, result
      n = n + 4
    end
    open, begun = open - ended, begun - ended

    local begins, m, at = nil, 0, 2
    for i = 1, #names do
      local name, step = names[i], values[at]
      if not step or #step < STEP_SIZE or byte(step) ~= WAITING then return false end
      local waits, bad = unpack_bytes('<I4I4', step, OPEN_AT)
      waits = waits - counts[name]
      set[n + 1] = fields[at]
      if waits > 0 then
        set[n + 2] = sub(step, 1, OPEN_AT - 1) .. pack('<I4I4', waits, bad) .. sub(step, STEP_SIZE + 1)
      elseif waits < 0 or bad > 0 or not values[at + 1] or byte(step, FLAGS_AT) < PLAIN then
        return false
      else
        set[n + 2] = ready .. sub(step, POLICY_AT, FLAGS_AT) .. since .. WAITS_FOR_NONE
        begins = begins or { nil, nil, nil, nil }
        begins[m + 1], begins[m + 2], begins[m + 3] = name, values[at + 1], L.hint(c, set[n + 2], sub(step, STEP_SIZE + 1))
        begun, m = begun + 1, m + 3
      end
      n, at = n + 2, at + 2
    end

    if begun > 0 then
      c = pack('<c1I4I4', 'r', open, begun) .. failed .. rest
    else
      local run = R.with_counts(id, key, c)
      if open > 0 or run.bad > 0 then return false end
      run.open, run.ready = 0, 0
      R.settle(run)
      c = R.pack_counts(run)
    end
    set[n + 1], set[n + 2] = 'c', c
    call('HSET', key, unpack(set))
    for i = 1, m, 3 do
      local name = begins[i]
      L.begin_plain(id, name, task_beside(list[1], list[2], name), begins[i + 1], begins[i + 2])
    end
    return true
  end

  -- Leaves these ends to run-steps.lua.
  local function leave(id, list)
    for at = 2, #list, 3 do
      R.post_end(id, list[at], true, nil, list[at + 2])
    end
  end

  function L.apply_successes()
    local ids, successes = L.successful_runs, L.successes
    if not ids[1] then return end
    L.successful_runs, L.successes = {}, {}
    prepare()
    local count, i = #ids, 0
    local function apply_all()
      while i < count do
        i = i + 1
        local id = ids[i]
        local list = successes[id]
        if not apply(id, list) then leave(id, list) end
      end
    end
    repeat -- where the record of one run is damaged, goes on behind it
      local _, problem = L.guard(apply_all)
      if problem then leave(ids[i], successes[ids[i]]) end
    until i >= count
    L.create_begun()
  end
end
