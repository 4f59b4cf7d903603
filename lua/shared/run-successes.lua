-- Steps that succeed: part of links.lua, behind run-ends.lua. Most ends are the first success of a step of this place, whose link says
-- which steps come after it. Then all that changes is known from few fields of the run, and nothing of it is kept in tables. Whatever
-- else holds is left to run-steps.lua.
do
  local call, try = redis.call, redis.pcall
  local byte, find, sub = string.byte, string.find, string.sub
  local pack, unpack_bytes = struct.pack, struct.unpack
  local R = L.runs
  local COUNTS_SIZE, STEP_SIZE, PLAIN = R.COUNTS_SIZE, R.STEP_SIZE, R.PLAIN
  -- Where the counts have when the run has started, and L.hint has the number of steps.
  local STARTED_AT, STARTED_END, TOTAL_AT = 22, 29, 9
  -- Where STEP of runs.lua has the flags, and how many steps before it have not ended and have failed; these: one, and none.
  local FLAGS_AT, OPEN_AT, LAST_OPEN = 11, 20, '\1' .. string.rep('\0', 7)
  local READY, WAITING = byte('r'), byte('w')
  -- How many ends of one run are dealt with at once.
  local MOST = 400
  local LONGEST_HINT = 256

  -- What STEP of runs.lua begins with: succeeded now, without and with a result, ready; and its last part: ready now, waiting for none.
  local succeeded, with_result, ready, since

  local function prepare()
    if succeeded then return end
    local now = pack('<d', L.millis)
    succeeded, with_result = 's' .. now, 'S' .. now
    ready, since = 'r' .. string.rep('\0', 8), now .. string.rep('\0', 8)
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

  -- What the link of a step says of its run and of those after it: when the run has started, as its counts have it; how many steps it has,
  -- as text, and what L.names_after returns; without that, a NUL.
  function L.hint(counts, total, names)
    local started = sub(counts, STARTED_AT, STARTED_END)
    return names ~= '' and started .. total .. names or started .. '\0'
  end

  -- A NUL and the names of the steps after one, by `d` of runs.lua; empty when they are many. A name with a brace is cut, and leads to no step.
  function L.names_after(d)
    local start = find(d, '{', 1, true)
    return start and start <= LONGEST_HINT and '\0' .. sub(d, 1, start - 1) or ''
  end

  -- Adds to `fields` those of the steps after the ended ones. Returns their names, how many of the ended ones are before each, and how
  -- many steps the run had when their links were written; nil when that differs.
  local function add_following(fields, list)
    local names, counts, n, total = { nil, nil }, {}, #fields, nil
    local i, size = 2, #list
    while i < size do
      local hint, times = list[i], 0
      repeat
        times, i = times + 1, i + 4
      until list[i] ~= hint
      local before, at = total, find(hint, '\0', TOTAL_AT, true)
      total = sub(hint, TOTAL_AT, at - 1)
      if before and before ~= total then return nil end
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
    return names, counts, total
  end

  -- The id of the task of a step, by that of the task of another step of the run.
  local function task_beside(task, other, name)
    return sub(task, 1, #task - #other) .. (find(name, '/', 1, true) and string.gsub(name, '/', '~') or name)
  end

  -- What apply does, when one step has ended and one comes after it, as in a chain: the same without a table. Returns nil, and has
  -- written nothing, when it is not that simple.
  local function apply_one(id, step, hint, task, result)
    local at = find(hint, '\0', TOTAL_AT, true)
    local stop = find(hint, '\0', at + 1, true)
    if not stop or stop ~= #hint then return nil end
    local key, name, field = L.base .. 'run:' .. id, sub(hint, at + 1, -2), 's:' .. step
    local after = 's:' .. name
    local values = try('HMGET', key, 'c', field, after, 'v:' .. name)
    if values.err then return false end
    local c, ended, waiting, message = values[1], values[2], values[3], values[4]
    if not c or #c ~= COUNTS_SIZE or not ended or #ended ~= STEP_SIZE or byte(ended) ~= READY then return false end
    if not waiting or #waiting < STEP_SIZE or byte(waiting) ~= WAITING then return false end
    local state, open, begun, all = unpack_bytes('<c1I4I4I4', c)
    local total = sub(hint, TOTAL_AT, at - 1)
    if state ~= 'r' or tonumber(total) ~= all then return false end
    local begins, names = sub(waiting, OPEN_AT, STEP_SIZE) == LAST_OPEN, sub(waiting, STEP_SIZE + 1)
    if begins then
      if not message or byte(waiting, FLAGS_AT) < PLAIN then return false end
      waiting = ready .. sub(waiting, 10, FLAGS_AT) .. since
    else
      local waits, bad = unpack_bytes('<I4I4', waiting, OPEN_AT)
      if waits < 2 then return false end
      if begun < 2 then return nil end
      waiting, begun = sub(waiting, 1, OPEN_AT - 1) .. pack('<I4I4', waits - 1, bad) .. names, begun - 1
    end
    ended = (result == '' and succeeded or with_result) .. sub(ended, 10)
    call('HSET', key, 'c', pack('<c1I4I4', state, open - 1, begun) .. sub(c, 10), field, ended, 'v:' .. step, result, after, waiting)
    if begins then L.begin_plain(id, name, task_beside(task, step, name), message, L.hint(c, total, names)) end
    return true
  end

  -- Returns false, and has written nothing, when this is not all there is to it.
  local function apply(id, list)
    local ended = #list / 4
    if ended > MOST or rawget(R, 'is_read') and R.is_read(id) then return false end
    if ended == 1 then
      local done = apply_one(id, list[1], list[2], list[3], list[4])
      if done ~= nil then return done end
    end
    local key, fields = L.base .. 'run:' .. id, { 'c', nil, nil, nil, nil, nil, nil, nil }
    for i = 1, ended do
      fields[i + 1] = 's:' .. list[4 * i - 3]
    end
    local names, counts, total = add_following(fields, list)
    local values = names and #fields <= 5 * MOST and try('HMGET', key, unpack(fields))
    if not values or values.err then return false end
    local c = values[1]
    if not c or #c ~= COUNTS_SIZE then return false end
    local state, open, begun, all = unpack_bytes('<c1I4I4I4', c)
    if state ~= 'r' or tonumber(total) ~= all then return false end

    local set, n = { nil, nil, nil, nil, nil, nil, nil, nil }, 0
    for i = 1, ended do
      local step, result, field = values[i + 1], list[4 * i], fields[i + 1]
      if not step or #step ~= STEP_SIZE or byte(step) ~= READY then return false end
      set[n + 1], set[n + 2] = field, (result == '' and succeeded or with_result) .. sub(step, 10)
      set[n + 3], set[n + 4] = 'v' .. sub(field, 2), result
      n = n + 4
    end
    open, begun = open - ended, begun - ended

    local begins, m, at = nil, 0, ended + 2
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
        set[n + 2] = ready .. sub(step, 10, FLAGS_AT) .. since
        begins = begins or { nil, nil, nil, nil }
        begins[m + 1], begins[m + 2], begins[m + 3] = name, values[at + 1], L.hint(c, total, sub(step, STEP_SIZE + 1))
        begun, m = begun + 1, m + 3
      end
      n, at = n + 2, at + 2
    end

    if begun > 0 then
      c = pack('<c1I4I4', state, open, begun) .. sub(c, 10)
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
      L.begin_plain(id, name, task_beside(list[3], list[1], name), begins[i + 1], begins[i + 2])
    end
    return true
  end

  function L.apply_successes()
    local ids, successes = L.successful_runs, L.successes
    if not ids[1] then return end
    L.successful_runs, L.successes = {}, {}
    prepare()
    for i = 1, #ids do
      local id = ids[i]
      local list = successes[id]
      if not L.guard(apply, id, list) then
        for at = 1, #list, 4 do
          R.post_end(id, list[at], true, nil, list[at + 3])
        end
      end
    end
    L.create_begun()
  end
end
