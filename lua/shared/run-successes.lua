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
  -- Where the counts have the steps that have failed, when the run has ended, and when it has started and how many steps it has.
  local FAILED_AT, BAD_AT, ENDED_AT, STARTED_AT = 10, 14, 18, 26
  -- Where STEP of runs.lua has the policy and the flags, and where what it has of when the step was ready ends.
  local POLICY_AT, READY_END = 10, 19
  -- The counts: state, open steps, ready ones, then failed ones and the end, then the start and the number of steps. And STEP: state, policy and
  -- flags, how many steps before it have not ended and have failed.
  local COUNTS, WAITING_STEP = '<c1I4I4c16c12', '<c1xxxxxxxxc2xxxxxxxxI4I4'
  -- What STEP ends with, of a step that waits for none; what the counts have of failed steps and of the end, while there are none; what
  -- they begin with when all have succeeded.
  local WAITS_FOR_NONE, NONE, DONE = string.rep('\0', 8), string.rep('\0', 16), 's' .. string.rep('\0', 8)
  -- How many steps have failed, when there is none.
  local NO_STEP = string.rep('\0', 4)
  -- How many ends of one run are dealt with at once.
  local MOST = 400
  -- L.hint is no longer than 255 bytes, and has so many before the names.
  local LONGEST_NAMES, HINT_HEAD = 232, 22
  local NOTHING = {}

  -- What STEP of runs.lua begins with, when a step is ready; and when it is: now.
  local ready, since

  local function prepare()
    if ready then return end
    since, ready = pack('<d', L.millis), 'r' .. string.rep('\0', 8)
  end

  -- Steps that begin, as L.create_plain takes them: with run and step; and how many values these are.
  local begun, length = {}, 0

  local function begin(id, link, message, run, step)
    local list, n = begun, length
    list[n + 1], list[n + 2], list[n + 3], list[n + 4], list[n + 5] = id, link, message, run, step
    length = n + 5
  end

  -- Lets a step begin whose task is one of this place with nothing special. `hint`: L.hint.
  function L.begin_plain(run, step, id, message, hint)
    begin(id, L.step_link(run, step, hint), message, run, step)
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

  -- The steps whose tasks have just succeeded, as far as the caller knows, packed: '1' when there may be others, '2' when there are none, and
  -- some are marked; how many they are; then per run six values (HEAD): its id, when it has started and how many steps it has, as the
  -- counts have it, what the ids of the tasks begin with, what L.neighbours says of the steps, how many they are, and a mark: '1' when others of
  -- this run have other steps next to them, else '2' when some have no result; and four per step, as they are written.
  local taken
  local HEAD = 6

  -- The id of the task of a step: `prefix` is what those of its run begin with.
  local function task_of(prefix, name)
    return prefix .. (find(name, '/', 1, true) and string.gsub(name, '/', '~') or name)
  end

  -- What deals with those that are not that simple: see gathered-steps.lua.
  local G, gathered

  -- While their tasks are there: who has no result may have stored one. Gathers those with the mark '1'.
  local function see_marked(steps)
    local at, size = 3, #steps
    repeat
      local stop = at + HEAD + 4 * steps[at + 4]
      if steps[at + 5] == '1' then
        gathered().gather(steps, at)
      elseif steps[at + 5] == '2' then
        for from = at + HEAD, stop - 1, 4 do
          local result = steps[from + 3] == '' and L.result_of(task_of(steps[at + 2], sub(steps[from], 3))) or ''
          if result ~= '' then steps[from + 1], steps[from + 3] = 'S' .. sub(steps[from + 1], 2), result end
        end
      end
      at = stop
    until at > size
  end

  -- Whether the hash of a task says that it is a step.
  local function is_step(id)
    return L.has_runs and type(try('HGET', L.task_prefix .. id, 'step')) == 'string'
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
    local watched, ids = L.read_links(all, size), nil
    if not watched and not lost and steps[2] and steps[1] ~= '1' then
      taken = steps
      if steps[1] ~= '' then see_marked(steps) end
      if steps[2] == tostring(size) then return NOTHING, NOTHING end
    elseif steps[3] then
      ids = {}
      for i = 1, size do
        local id, detail = all[i], details[i]
        if not (watched and watched[id]) and type(detail) ~= 'table' then ids[id] = false end
      end
      local at = 3
      repeat
        at = gathered().gather(steps, at, ids)
      until at > #steps
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

  -- Of steps with these names next to them, of which at most one comes after them: its name (or false), two fields of the run to read, and what the
  -- id of its task ends with. false when there are more, or when they are not known.
  local afters = {}

  local function find_after(text)
    local after = afters[text]
    if after == nil then
      local names, fields = read_names(text), fields_after[text]
      local name = names and names[1]
      after = names and not names[2] and { name or false, fields[2], fields[3], name and task_of('', name) } or false
      afters[text] = after
    end
    return after
  end

  -- The byte of a link for the size of L.hint, by the size of the names in it.
  local sizes = {}

  local function size_of(length)
    local text = sizes[length]
    if not text then
      text = string.char(HINT_HEAD + length)
      sizes[length] = text
    end
    return text
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

  function gathered()
    if G then return G end
    G = {}
    -- Includes shared/gathered-steps.lua
    return G
  end

  -- Writes what follows from the ends of the steps from a head in `taken`, when at most one step comes after them: most ends are such. `after`: see
  -- find_after. Returns false, and has written nothing, when another step has failed, and nil when this is not all there is to it.
  local function apply_plainly(steps, at, ended, after)
    local id, rest, prefix = steps[at], steps[at + 1], steps[at + 2]
    local key = L.base .. 'run:' .. id
    local name, link = after[1], nil
    local values = name and try('HMGET', key, 'c', after[2], after[3]) or try('HMGET', key, 'c', 'o')
    local c, waiting, message = values[1], values[2], values[3]
    if not c or #c ~= R.COUNTS_SIZE then return nil end
    local state, open, ready_now, none, start = unpack_bytes(COUNTS, c)
    if state ~= 'r' or start ~= rest or ready_now < ended or open < ready_now then return nil end
    if none ~= NONE then return false end
    open, ready_now = open - ended, ready_now - ended
    if not name then
      if ready_now > 0 then
        c = pack(COUNTS, 'r', open, ready_now, NONE, rest)
      elseif open > 0 then
        return nil
      else
        c = DONE .. sub(NONE, 9) .. since .. rest
      end
      call('HSET', key, 'c', c, unpack(steps, at + HEAD, at + HEAD - 1 + 4 * ended))
      if ready_now == 0 then note_success(id, waiting or '{}', c, prefix) end
      return true
    end
    if not waiting or #waiting < STEP_SIZE then return nil end
    local before, how, waits, bad = unpack_bytes(WAITING_STEP, waiting)
    waits = waits - ended
    if before ~= 'w' or waits < 0 then return nil end
    if waits > 0 then
      if ready_now == 0 then return nil end
      waiting = pack('<c19I4I4', waiting, waits, bad) .. sub(waiting, STEP_SIZE + 1)
    elseif bad > 0 or not message or byte(how, 2) < PLAIN then
      return nil
    else
      local names = sub(waiting, STEP_SIZE + 1)
      waiting, ready_now = ready .. how .. since .. WAITS_FOR_NONE, ready_now + 1
      link = 'r' .. size_of(#names) .. id .. '\0' .. rest .. how .. since .. names .. after[2]
    end
    c = pack(COUNTS, 'r', open, ready_now, NONE, rest)
    call('HSET', key, 'c', c, after[2], waiting, unpack(steps, at + HEAD, at + HEAD - 1 + 4 * ended))
    if link then begin(prefix .. after[4], link, message, id, name) end
    return true
  end

  -- Goes on at state.at, behind what was gathered, and gathers what is not that simple.
  local function apply_taken(steps, state, size)
    local at, may_be_read = state.at, rawget(R, 'is_read')
    repeat
      local more = steps[at + 4]
      local ended = more == '1' and 1 or tonumber(more)
      state.at = at
      if steps[at + 5] ~= '1' then
        local after, done = not may_be_read and find_after(steps[at + 3]), false
        if after and ended <= MOST then done = apply_plainly(steps, at, ended, after) end
        if not done then gathered().gather(steps, at, nil, done == nil) end
      end
      at = at + HEAD + 4 * ended
    until at > size
    state.at = at
  end

  local function apply_all_taken(steps)
    local size, state = #steps, { at = 3 }
    while state.at <= size do
      local _, problem = L.guard(apply_taken, steps, state, size)
      if problem then state.at = gathered().gather(steps, state.at) end
    end
  end

  function L.apply_successes()
    if taken then
      local steps = taken
      taken = nil
      apply_all_taken(steps)
    end
    if G then G.apply() end
    L.create_begun()
  end
end
