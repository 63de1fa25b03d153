// Rules of imports; `node scripts/check-imports.ts` prints what breaks them:
// - Files form no cycles, types included.
// - Folders form no cycles either. A folder is the files directly in it; those in folders below it are not part of it.
//   A table of constants, limits.ts, belongs to no folder: all of them may import it.
// - Imports between packages name what `exports` in package.json offers.
// Tests and generated code are left out.
import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'

type Graph = ReadonlyMap<string, ReadonlySet<string>>

const roots = '{packages/*,services/*,gateway,launcher,bench}'
const statement =
  /^(?:import|export)\s[^'"`;]*?\bfrom\s+'([^']+)'|^import\s+'([^']+)'|\bimport\('([^']+)'\)/gm

const files = new Set(
  globSync(`${roots}/src/**/*.ts`).filter((file) => !file.endsWith('.test.ts') && !file.includes('/gen/')),
)

/** The sources that packages export, by the names under which others import them. */
const exported = new Map(
  globSync(`${roots}/package.json`).flatMap((manifest) => {
    const { name, exports = {} } = JSON.parse(readFileSync(manifest, 'utf8'))
    return Object.entries<{ source: string }>(exports).map(([path, { source }]) => [
      join(name, path),
      join(dirname(manifest), source),
    ])
  }),
)

const faults: string[] = []

function importsOf(file: string): ReadonlySet<string> {
  const found = new Set<string>()
  for (const [, ...names] of readFileSync(file, 'utf8').matchAll(statement)) {
    const name = names.find((one) => one !== undefined) ?? ''
    const target = name.startsWith('.')
      ? join(dirname(file), name.replace(/\.js$/, '.ts'))
      : exported.get(name)
    if (target !== undefined && files.has(target)) found.add(target)
    else if (target === undefined && name.startsWith('@overlay/'))
      faults.push(`${file}: ${name} is not exported`)
  }
  return found
}

function foldersOf(imports: Graph): Graph {
  const folders = new Map<string, Set<string>>()
  for (const [file, others] of imports) {
    const folder = dirname(file)
    const found = folders.get(folder) ?? new Set()
    for (const other of others)
      if (dirname(other) !== folder && !other.endsWith('/limits.ts')) found.add(dirname(other))
    folders.set(folder, found)
  }
  return folders
}

function reachable(graph: Graph, from: string): ReadonlySet<string> {
  const seen = new Set<string>()
  const waiting = [...(graph.get(from) ?? [])]
  for (let node = waiting.pop(); node !== undefined; node = waiting.pop()) {
    if (seen.has(node)) continue
    seen.add(node)
    waiting.push(...(graph.get(node) ?? []))
  }
  return seen
}

/** Lines `a -> b`, of each import within a cycle. */
function cyclesIn(graph: Graph): string[] {
  const below = new Map([...graph.keys()].map((node) => [node, reachable(graph, node)]))
  return [...graph].flatMap(([node, others]) =>
    [...others].filter((other) => below.get(other)?.has(node)).map((other) => `${node} -> ${other}`),
  )
}

const imports: Graph = new Map([...files].map((file) => [file, importsOf(file)]))
for (const cycle of [...cyclesIn(imports), ...cyclesIn(foldersOf(imports))]) faults.push(`cycle: ${cycle}`)
for (const fault of faults) console.error(fault)
if (faults.length > 0) process.exit(1)
