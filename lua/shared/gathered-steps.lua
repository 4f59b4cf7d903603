-- Steps that have succeeded, run by run: where others of a run have ended with other steps next to them, where several steps come after one, or
-- where the caller does not know all. Part of run-successes.lua, made when there are some.
do
  -- Where STEP of runs.lua has the flags, and how many steps before it have not ended and have failed.
  local FLAGS_AT, OPEN_AT = 11, 20
  local RUNNING, READY, WAITING = byte('r'), byte('r'), byte('w')
  -- Room for what several steps of a run write: a list with room costs less than one that grows.
  local ROOM = 48

  -- A list of each run whose steps are gathered, in order, and by its id: the first four values of its head, and when there are others
  -- behind it a list of those: the names next to them, and the position where they begin; from FIRST on what is to be written: field and value each.
  local lists, by_run, count = {}, {}, 0
  local FIRST = 6

  -- The list of a run with `more` further steps that have succeeded, and how long it is.
  local function list_of(run, rest, prefix, names, more)
    local list = by_run[run]
    if list then
      local others, length = list[5], #list
      if (others and others[#others - 1] or list[4]) ~= names or list[2] ~= rest then
        others = others or {}
        list[5] = others
        others[#others + 1], others[#others + 2] = list[2] == rest and names or '', length + 1
      end
      return list, length
    end
    if more > 1 then
      list = { unpack(NOTHING, 1, ROOM) }
      list[1], list[2], list[3], list[4], list[5] = run, rest, prefix, names, false
    else
      list = { run, rest, prefix, names, false, nil, nil, nil, nil }
    end
    count = count + 1
    by_run[run], lists[count] = list, list
    return list, FIRST - 1
  end

  -- Adds the steps from a head in `taken` to the list of their run; those of them that `ids`, if given, has by the ids of their tasks, and notes
  -- them there. `known`: it is known that apply would return false. Returns where the next head is.
  function G.gather(steps, at, ids, known)
    local run, rest, prefix, names, more = unpack(steps, at, at + 4)
    local list, length
    more = tonumber(more)
    local stop = at + HEAD + 4 * more
    for from = at + HEAD, stop - 1, 4 do
      local field, ended, result = steps[from], steps[from + 1], steps[from + 3]
      local id = (ids or result == '') and task_of(prefix, sub(field, 3))
      if not ids or ids[id] == false then
        if not list then list, length = list_of(run, rest, prefix, names, more) end
        if result == '' then
          result = L.result_of(id)
          if result ~= '' then ended = 'S' .. sub(ended, 2) end
        end
        list[length + 1], list[length + 2], list[length + 3], list[length + 4] = field, ended, steps[from + 2], result
        length = length + 4
        if ids then ids[id] = true end
      end
    end
    if known then list.known = true end
    return stop
  end

  -- The names of the steps after the ended ones of a run, the fields to read, and how many of the ended ones are before each, by name (nil:
  -- all). nil when the names are many.
  local function find_following(list)
    local text, more = list[4], list[5]
    if not more then
      local names = read_names(text)
      return names, fields_after[text]
    end
    local all, counts, fields, from = { nil }, {}, { 'c', nil, nil }, FIRST
    for i = 1, #more + 1, 2 do
      local to, names = more[i + 1] or #list + 1, read_names(text)
      if not names then return nil end
      for j = 1, #names do
        local name = names[j]
        if not counts[name] then
          local n = #all + 1
          all[n], counts[name], fields[2 * n], fields[2 * n + 1] = name, 0, 's:' .. name, 'v:' .. name
        end
        counts[name] = counts[name] + (to - from) / 4
      end
      text, from = more[i], to
    end
    if not all[1] then fields[2] = 'o' end
    return all, fields, counts
  end

  local function is_read(id)
    return rawget(R, 'is_read') and R.is_read(id)
  end

  -- Whether the steps to write are ready. Only where a step of the run has failed, somebody may have damaged one that still has a task.
  local function are_ready(key, list)
    local fields = {}
    for i = FIRST, #list, 4 do
      fields[#fields + 1] = list[i]
    end
    local steps = call('HMGET', key, unpack(fields))
    for i = 1, #steps do
      if not steps[i] or #steps[i] ~= STEP_SIZE or byte(steps[i]) ~= READY then return false end
    end
    return true
  end

  -- Returns false, and has written nothing, when this is not all there is to it.
  local function apply(list)
    local id, rest, prefix, set, n = list[1], list[2], list[3], list, #list
    local key, ended = L.base .. 'run:' .. id, (n - FIRST + 1) / 4
    if ended > MOST or is_read(id) then return false end
    local names, fields, counts = find_following(list)
    local values = names and #fields <= 2 * MOST and try('HMGET', key, unpack(fields))
    if not values or values.err then return false end
    local c = values[1]
    if not c or byte(c) ~= RUNNING or sub(c, STARTED_AT) ~= rest then return false end
    local failed = sub(c, FAILED_AT, STARTED_AT - 1)
    if failed ~= NONE and not are_ready(key, list) then return false end
    local open, begun = unpack_bytes('<I4I4', c, 2)
    if begun < ended or open < begun then return false end
    open, begun = open - ended, begun - ended

    local begins, m, at = nil, 0, 2
    for i = 1, #names do
      local name, step = names[i], values[at]
      if not step or #step < STEP_SIZE or byte(step) ~= WAITING then return false end
      local waits, bad = unpack_bytes('<I4I4', step, OPEN_AT)
      waits = waits - (counts and counts[name] or ended)
      set[n + 1] = fields[at]
      if waits > 0 then
        set[n + 2] = sub(step, 1, OPEN_AT - 1) .. pack('<I4I4', waits, bad) .. sub(step, STEP_SIZE + 1)
      elseif waits < 0 or bad > 0 or not values[at + 1] or byte(step, FLAGS_AT) < PLAIN then
        return false
      else
        local how = sub(step, POLICY_AT, FLAGS_AT) .. since
        set[n + 2] = ready .. how .. WAITS_FOR_NONE
        begins = begins or { nil, nil, nil }
        begins[m + 1], begins[m + 2], begins[m + 3] = name, values[at + 1], rest .. how .. sub(step, STEP_SIZE + 1)
        begun, m = begun + 1, m + 3
      end
      n, at = n + 2, at + 2
    end

    local options = begun == 0 and (values[2] or '{}')
    if not options then
      c = pack('<c1I4I4', 'r', open, begun) .. failed .. rest
    elseif names[1] or open > 0 or unpack_bytes('<I4', c, BAD_AT) > 0 then
      return false
    else
      c = DONE .. sub(c, FAILED_AT, ENDED_AT - 1) .. since .. rest
    end
    set[n + 1], set[n + 2] = 'c', c
    call('HSET', key, unpack(set, FIRST, n + 2))
    if options then note_success(id, options, c, prefix) end
    for i = 1, m, 3 do
      local name = begins[i]
      L.begin_plain(id, name, task_of(prefix, name), begins[i + 1], begins[i + 2])
    end
    return true
  end

  -- Leaves these ends to run-steps.lua, unless the run is a later one of this id. What apply has added is not an end.
  local function leave(list, length)
    local c = try('HGET', L.base .. 'run:' .. list[1], 'c')
    if type(c) == 'string' and #c == R.COUNTS_SIZE and sub(c, STARTED_AT, STARTED_AT + 7) ~= sub(list[2], 1, 8) then return end
    for at = FIRST, length, 4 do
      R.post_end(list[1], sub(list[at], 3), true, nil, list[at + 3])
    end
  end

  local function apply_from(first, state)
    for i = first, count do
      local list = lists[i]
      state.at, state.length = i, #list
      if list.known or not apply(list) then leave(list, state.length) end
    end
  end

  function G.apply()
    if count == 0 then return end
    local state = { at = 0, length = 0 }
    repeat -- where the record of one run is damaged, goes on behind it
      local _, problem = L.guard(apply_from, state.at + 1, state)
      if problem then leave(lists[state.at], state.length) end
    until state.at >= count
    lists, by_run, count = {}, {}, 0
  end
end
