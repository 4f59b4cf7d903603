-- Steps that succeed: part of links.lua, behind plain-tasks.lua. Most ends are the first success of a step of this place, whose link says
-- which steps come after it. Then all that changes is known from few fields of the run, and is written from the links at once. Whatever
-- else holds is left to run-steps.lua.
do
  local call, try, type = redis.call, redis.pcall, type
  local byte, find, sub = string.byte, string.find, string.sub
  local pack, unpack_bytes = struct.pack, struct.unpack
  -- Bytes of COUNTS, and of STEP of runs.lua; flags of a step from which on its task is one of this place with nothing special.
  local STEP_SIZE, PLAIN = 27, 2
  local R = { COUNTS_SIZE = 37, STEP_SIZE = STEP_SIZE, PLAIN = PLAIN }
  L.runs = R
  -- What the id of a member of a batch begins with.
  local BATCH = byte('b')
  -- Where the counts have the steps that are ready and that have failed, when the run has ended, and when it has started and how many steps
  -- it has.
  local BEGUN_AT, FAILED_AT, BAD_AT, ENDED_AT, STARTED_AT = 6, 10, 14, 18, 26
  -- Where STEP of runs.lua has the policy, the flags, when it was ready, and how many steps before it have not ended and have failed.
  local POLICY_AT, FLAGS_AT, READY_END, OPEN_AT = 10, 11, 19, 20
  -- Where L.hint has what STEP has of this step, and the names.
  local HINT_STEP, HINT_NAMES = 13, 23
  local RUNNING, READY, WAITING = byte('r'), byte('r'), byte('w')
  -- What STEP ends with, of a step that waits for none; what the counts have of failed steps and of the end, while there are none; what
  -- they begin with when all have succeeded.
  local WAITS_FOR_NONE, NONE, DONE = string.rep('\0', 8), string.rep('\0', 16), 's' .. string.rep('\0', 8)
  -- How STEP waits for one more step, and none has failed; how many steps have begun, when there is none.
  local LAST_OPEN, NO_STEP = '\1' .. string.rep('\0', 7), string.rep('\0', 4)
  -- How many ends of one run are dealt with at once.
  local MOST = 400
  -- L.hint is no longer than 255 bytes.
  local LONGEST_NAMES = 232
  -- Room for what several steps of a run write: a list with room costs less than one that grows.
  local ROOM, NOTHING = 48, {}

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

  -- What the link of a step says of its run, of the step and of those next to it: when the run has started and how many steps it has, as the
  -- counts have it; policy, flags and when it was ready, as the step has it; and what L.neighbours returns.
  function L.hint(counts, step, neighbours)
    return sub(counts, STARTED_AT) .. sub(step, POLICY_AT, READY_END) .. neighbours
  end

  -- A NUL and what `d` of runs.lua says of the names of the steps after one and before it: without the latter when they are many, and empty
  -- when those after it are. A name with a brace is cut, and leads to no step.
  function L.neighbours(d)
    local start = find(d, '{', 1, true)
    if start and start > LONGEST_NAMES + 1 then
      start = byte(d) == 0 and 1 or (find(d, '\0\0', 1, true) or start - 1) + 1
    end
    return start and start <= LONGEST_NAMES + 1 and '\0' .. sub(d, 1, start - 1) or ''
  end

  -- A list of each run with steps that have succeeded, in order, and by its id: the id, what the ids of its tasks begin with, the L.hint of the
  -- first step, and when there are others behind it a list of those, each with the position where its steps begin; from FIRST on what is to
  -- be written: field and value each, four per step.
  local lists, by_run, count = {}, {}, 0
  local FIRST = 5

  -- The list of a run with `more` further steps that have succeeded, and how long it is.
  local function list_of(run, prefix, hint, more)
    local list = by_run[run]
    if list then
      local others, length = list[4], #list
      if (others and others[#others - 1] or list[3]) ~= hint then
        others = others or {}
        list[4] = others
        others[#others + 1], others[#others + 2] = hint, length + 1
      end
      return list, length
    end
    if more > 1 then
      list = { unpack(NOTHING, 1, ROOM) }
      list[1], list[2], list[3], list[4] = run, prefix, hint, false
    else
      list = { run, prefix, hint, false, nil, nil, nil, nil }
    end
    count = count + 1
    by_run[run], lists[count] = list, list
    return list, FIRST - 1
  end

  -- The id of the task of a step: `prefix` is what those of its run begin with.
  local function task_of(prefix, name)
    return prefix .. (find(name, '/', 1, true) and string.gsub(name, '/', '~') or name)
  end

  -- The steps whose tasks have just succeeded, as far as the caller knows, packed: '1' when there may be others; then per run its id, the L.hint of
  -- the steps, what the ids of the tasks begin with, how many there are, and field and result of each. Takes those of them that
  -- `ids`, if given, has by the ids of their tasks, and notes them there.
  local function take_steps(steps, ids)
    local at = 2
    while at < #steps do
      local run, hint, prefix, more = steps[at], steps[at + 1], steps[at + 2], tonumber(steps[at + 3])
      local how, without, with = sub(hint, HINT_STEP, HINT_NAMES - 1) .. WAITS_FOR_NONE, nil, nil
      local list, length
      for from = at + 4, at + 2 + 2 * more, 2 do
        local field, result = steps[from], steps[from + 1]
        local id = (ids or result == '') and task_of(prefix, sub(field, 3))
        if not ids or ids[id] == false then
          if not list then list, length = list_of(run, prefix, hint, more) end
          if result == '' then result = L.result_of(id) end
          local ended
          if result == '' then
            without = without or succeeded .. how
            ended = without
          else
            with = with or with_result .. how
            ended = with
          end
          list[length + 1], list[length + 2], list[length + 3], list[length + 4] = field, ended, 'v' .. sub(field, 2), result
          length = length + 4
          if ids then ids[id] = true end
        end
      end
      at = at + 4 + 2 * more
    end
  end

  -- Whether the hash of a task says that it is a step.
  local function is_step(id)
    return L.has_runs and type(try('HGET', L.task_prefix .. id, 'step')) == 'string'
  end

  -- How many steps these are.
  local function count_steps(steps)
    local at, n = 2, 0
    while at < #steps do
      local more = tonumber(steps[at + 3])
      n, at = n + more, at + 4 + 2 * more
    end
    return n
  end

  -- The first `size` of these tasks have ended; those with false, or a text as their result, in `details` have just succeeded. Deals with members
  -- of batches and steps of runs among those that nobody else watches: most linked tasks. `lost`: not all that the caller has sent are among
  -- them. Returns the others that may have links, and their details. Call it before their hashes are deleted.
  function L.take_successes(all, details, size, lost)
    if L.has_links and size > 0 and (byte(all[1]) == BATCH or byte(all[size]) == BATCH) then
      L.load_parts()
      all, details, size = L.take_members(all, details, size)
    end
    prepare()
    local steps = L.ended_steps ~= '' and cmsgpack.unpack(L.ended_steps) or NOTHING
    local watched, known = L.read_links(all, size), count_steps(steps)
    if known == size and not watched and not lost then
      take_steps(steps)
      return NOTHING, NOTHING
    end
    local ids = nil
    if known > 0 then
      ids = {}
      for i = 1, size do
        local id, detail = all[i], details[i]
        if not (watched and watched[id]) and type(detail) ~= 'table' then ids[id] = false end
      end
      take_steps(steps, ids)
    end
    local left, left_details, n, members = {}, {}, 0, false
    local unknown = steps[1] == '1'
    for i = 1, size do
      local id, detail = all[i], details[i]
      local link, member = watched and watched[id], L.has_links and byte(id) == BATCH
      if not (ids and ids[id]) and (link or member or (unknown or type(detail) == 'table') and is_step(id)) then
        n = n + 1
        left[n], left_details[n] = id, detail
        members = members or member and not link
      end
    end
    if not members then return left, left_details end
    L.load_parts()
    return L.take_members(left, left_details, n)
  end

  -- The names of the steps after one in what L.neighbours has returned, and the fields of a run to read when all before them end, by that text.
  -- nil: they are many.
  local followers, fields_after = {}, {}

  local function read_names(text)
    local names = followers[text]
    if names or text == '' then return names end
    names = { nil }
    local fields, n, at, stop = { 'c', nil, nil }, 0, 1, find(text, '\0', 2, true)
    while stop and stop > at + 1 do
      local name = sub(text, at + 1, stop - 1)
      n = n + 1
      names[n], fields[2 * n], fields[2 * n + 1] = name, 's:' .. name, 'v:' .. name
      at = stop
      stop = find(text, '\0', at + 1, true)
    end
    if n == 0 then fields[2] = 'o' end
    followers[text], fields_after[text] = names, fields
    return names
  end

  -- The names of the steps after the ended ones of a run, the fields to read, and how many of the ended ones are before each, by name (nil:
  -- all). `rest`: what the counts end with. nil when the links differ in that, or when the names are many.
  local function find_following(list, rest)
    local hint, more = list[3], list[4]
    if not more then
      local text = sub(hint, HINT_NAMES)
      local names = read_names(text)
      return names, fields_after[text]
    end
    local all, counts, fields, from = { nil }, {}, { 'c', nil, nil }, FIRST
    for i = 1, #more + 1, 2 do
      local to, names = more[i + 1] or #list + 1, read_names(sub(hint, HINT_NAMES))
      if not names or sub(hint, 1, HINT_STEP - 1) ~= rest then return nil end
      for j = 1, #names do
        local name = names[j]
        if not counts[name] then
          local n = #all + 1
          all[n], counts[name], fields[2 * n], fields[2 * n + 1] = name, 0, 's:' .. name, 'v:' .. name
        end
        counts[name] = counts[name] + (to - from) / 4
      end
      hint, from = more[i], to
    end
    if not all[1] then fields[2] = 'o' end
    return all, fields, counts
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

  -- Until when a run is kept that ends now, by the text of its options.
  local ends = {}

  local function kept_until(text)
    local at = ends[text]
    if not at then
      local known, options = pcall(cjson.decode, text)
      local retention = known and type(options) == 'table' and options.retention
      at = string.format('%.0f', math.floor(L.millis / 1000) + (type(retention) == 'number' and retention or 0))
      ends[text] = at
    end
    return at
  end

  -- The timers of runs that have ended: score and name each; and what the ids of the tasks begin with of those in which no step has failed.
  local timers, over = {}, {}

  function L.write_timers()
    for first = 1, #timers, 1000 do
      call('ZADD', L.timers, unpack(timers, first, first + 999 < #timers and first + 999 or #timers))
    end
    for first = 1, #over, 1000 do
      call('HDEL', L.running, unpack(over, first, first + 999 < #over and first + 999 or #over))
    end
    timers, over = {}, {}
  end

  -- A run with these options and counts has succeeded.
  local function note_success(id, options, counts, prefix)
    local n = #timers
    timers[n + 1], timers[n + 2] = kept_until(options), 'run ' .. id
    if sub(counts, FAILED_AT, BAD_AT - 1) == NO_STEP then over[#over + 1] = prefix end
    L.note_run(id, options, counts)
  end

  -- What apply does, when one step has ended and one comes after it, as in a chain: the same without tables. Returns nil, and has written
  -- nothing, when it is not that simple.
  local function apply_one(list, key, rest)
    local hint = list[3]
    local stop = find(hint, '\0', HINT_NAMES + 1, true)
    if not stop or stop == HINT_NAMES + 1 or (byte(hint, stop + 1) or 0) ~= 0 then return nil end
    local name = sub(hint, HINT_NAMES + 1, stop - 1)
    local after = 's:' .. name
    local values = try('HMGET', key, 'c', after, 'v:' .. name)
    local c, waiting, message = values[1], values[2], values[3]
    if not c or byte(c) ~= RUNNING or sub(c, STARTED_AT) ~= rest then return false end
    if sub(c, FAILED_AT, STARTED_AT - 1) ~= NONE then return nil end
    if not waiting or not message or #waiting < STEP_SIZE or byte(waiting) ~= WAITING then return false end
    if sub(waiting, OPEN_AT, STEP_SIZE) ~= LAST_OPEN or byte(waiting, FLAGS_AT) < PLAIN then return nil end
    local open, begun = unpack_bytes('<I4', c, 2), sub(c, BEGUN_AT, FAILED_AT - 1)
    if open < 1 or begun == NO_STEP then return nil end
    local how = sub(waiting, POLICY_AT, FLAGS_AT) .. since
    c = pack('<c1I4', 'r', open - 1) .. begun .. NONE .. rest
    call('HSET', key, 'c', c, list[5], list[6], list[7], list[8], after, ready .. how .. WAITS_FOR_NONE)
    L.begin_plain(list[1], name, task_of(list[2], name), message, rest .. how .. sub(waiting, STEP_SIZE + 1))
    return true
  end

  -- Returns false, and has written nothing, when this is not all there is to it.
  local function apply(list)
    local id, set, n, rest = list[1], list, #list, sub(list[3], 1, HINT_STEP - 1)
    local key, ended = L.base .. 'run:' .. id, (n - FIRST + 1) / 4
    if ended > MOST or rawget(R, 'is_read') and R.is_read(id) then return false end
    if ended == 1 then
      local done = apply_one(list, key, rest)
      if done ~= nil then return done end
    end
    local names, fields, counts = find_following(list, rest)
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
    if options then note_success(id, options, c, list[2]) end
    for i = 1, m, 3 do
      local name = begins[i]
      L.begin_plain(id, name, task_of(list[2], name), begins[i + 1], begins[i + 2])
    end
    return true
  end

  -- Leaves these ends to run-steps.lua, unless the run is a later one of this id. What apply has added is not an end.
  local function leave(list, length)
    local c = try('HGET', L.base .. 'run:' .. list[1], 'c')
    if type(c) == 'string' and #c == R.COUNTS_SIZE and sub(c, STARTED_AT, STARTED_AT + 7) ~= sub(list[3], 1, 8) then return end
    for at = FIRST, length, 4 do
      R.post_end(list[1], sub(list[at], 3), true, nil, list[at + 3])
    end
  end

  local function apply_from(first, state)
    for i = first, count do
      local list = lists[i]
      state.at, state.length = i, #list
      if not apply(list) then leave(list, state.length) end
    end
  end

  function L.apply_successes()
    if count == 0 then return end
    local state = { at = 0, length = 0 }
    repeat -- where the record of one run is damaged, goes on behind it
      local _, problem = L.guard(apply_from, state.at + 1, state)
      if problem then leave(lists[state.at], state.length) end
    until state.at >= count
    lists, by_run, count = {}, {}, 0
    L.create_begun()
  end
end
