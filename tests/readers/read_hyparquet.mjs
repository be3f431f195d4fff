// hyparquet, the JavaScript reader. Answers jobs as canonical.py describes them; floats are marked {"$float": text} for
// matrix.py to read, since JSON's numbers in JavaScript do not tell 1.0 from 1.
import { createInterface } from 'node:readline'
import { createRequire } from 'node:module'
import { pathToFileURL } from 'node:url'

const require = createRequire(`${process.argv[2]}/package.json`)
const load = name => import(pathToFileURL(require.resolve(name)).href)
const { asyncBufferFromFile, parquetMetadataAsync, parquetReadObjects } = await load('hyparquet')
const { compressors } = await load('hyparquet-compressors')

class Moment {
  constructor(units, digits) {
    this.units = units
    this.digits = digits
  }
}
class Day {
  constructor(days) {
    this.days = days
  }
}
const hex = bytes => Array.from(bytes, b => b.toString(16).padStart(2, '0')).join('')
const parsers = {
  timestampFromMilliseconds: v => new Moment(BigInt(v), 3),
  timestampFromMicroseconds: v => new Moment(BigInt(v), 6),
  timestampFromNanoseconds: v => new Moment(BigInt(v), 9),
  dateFromDays: v => new Day(v),
  stringFromBytes: b => b && new TextDecoder().decode(b),
  uuidFromBytes: b => b && hex(b),
  geometryFromBytes: b => b,
  geographyFromBytes: b => b,
}

// A leaf of the schema decides what a JavaScript number stands for.
function convert(value, node) {
  const { element } = node
  if (value === null || value === undefined) return null
  if (node.children.length) return nested(value, node)
  if (value instanceof Moment) return { $timestamp: [String(value.units), value.digits, element.logical_type?.isAdjustedToUTC ?? true] }
  if (value instanceof Day) return { $date: value.days }
  if (value instanceof Uint8Array) return hex(value)
  const logical = element.logical_type?.type
  if (logical === 'TIME' || element.converted_type?.startsWith('TIME_')) return { $time: String(value) }
  if (element.converted_type === 'DECIMAL' || logical === 'DECIMAL') return { $float: String(value) }
  if (typeof value === 'bigint') return { $int: String(value) }
  if (typeof value === 'number' && (element.type === 'FLOAT' || element.type === 'DOUBLE')) {
    return { $float: Object.is(value, -0) ? '-0.0' : String(value) }
  }
  return value
}

function nested(value, node) {
  const kind = node.element.converted_type ?? node.element.logical_type?.type
  if (kind === 'LIST') {
    const inner = node.children[0].children.length === 1 ? node.children[0].children[0] : node.children[0]
    return value.map(v => convert(v, inner))
  }
  if (kind === 'MAP' || kind === 'MAP_KEY_VALUE') {
    const [key, item] = node.children[0].children
    const pairs = value instanceof Map ? [...value] : Array.isArray(value)
      ? value.map(e => Array.isArray(e) ? e : [e.key, e.value]) : Object.entries(value).map(([k, v]) => [number(k, key), v])
    return { $map: pairs.map(([k, v]) => [convert(k, key), convert(v, item)]) }
  }
  return Object.fromEntries(node.children.map(child => [child.element.name, convert(value[child.element.name], child)]))
}

// Map keys come back as object keys, that is as text.
const number = (text, node) => ({ INT64: v => BigInt(v), INT32: v => Number(v), DOUBLE: v => Number(v), FLOAT: v => Number(v) })[node.element.type]?.(text) ?? text

function tree(schema) {
  let at = 0
  const take = () => {
    const element = schema[at++]
    const node = { element, children: [] }
    for (let i = 0; i < (element.num_children ?? 0); i++) node.children.push(take())
    return node
  }
  return take()
}

for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line)
  let answer
  try {
    if (job.aggregates) {
      answer = { skipped: true }
    } else {
      let columns
      const rows = []
      for (const path of job.paths) {
        const file = await asyncBufferFromFile(path)
        const metadata = await parquetMetadataAsync(file)
        const { children } = tree(metadata.schema)
        columns = children.map(child => child.element.name)
        for (const row of await parquetReadObjects({ file, metadata, compressors, parsers, utf8: false })) {
          rows.push(children.map(child => convert(row[child.element.name], child)))
        }
      }
      answer = { columns, rows }
    }
  } catch (error) {
    answer = { error: String(error?.stack ?? error).slice(0, 2000) }
  }
  process.stdout.write(JSON.stringify(answer) + '\n')
}
