import { createReadStream } from 'node:fs'
import { open, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import type { ExportedTable } from '@overlay/rpc'
import { sync } from './export.js'
import { openMeter } from './meter.js'

export type StoredTable = Omit<ExportedTable, 'migrations'>

export interface StoredSchema {
  /** Those that the schema has run, in order. */
  readonly migrations: readonly string[]
  /** In the order of their references: targets first. */
  readonly tables: readonly StoredTable[]
}

/** The parts of a snapshot. The file is written last: a directory that has it is complete. */
export interface Manifest {
  readonly format: 1
  readonly madeAt: string
  readonly schemas: Readonly<Record<string, StoredSchema>>
}

const NAME = 'manifest.json'

export const fileOf = (directory: string, schema: string, table: string): string =>
  join(directory, schema, `${table}.copy`)

export async function writeManifest(directory: string, manifest: Manifest): Promise<void> {
  const file = await open(join(directory, NAME), 'wx', 0o600)
  try {
    await file.writeFile(`${JSON.stringify(manifest, null, 2)}\n`)
    await file.sync()
  } finally {
    await file.close()
  }
  await sync(directory)
}

export async function readManifest(directory: string): Promise<Manifest> {
  const text = await readFile(join(directory, NAME), 'utf8').catch((cause: unknown) => {
    throw new Error(`${directory} is no snapshot, or not a whole one`, { cause })
  })
  const parsed: unknown = JSON.parse(text)
  if (!isManifest(parsed))
    throw new Error(`${join(directory, NAME)} has a form that this program does not know`)
  const schemas = Object.entries(parsed.schemas).map(([schema, { migrations, tables }]) => [
    schema,
    { migrations: [...migrations].sort(), tables },
  ])
  return { ...parsed, schemas: Object.fromEntries(schemas) }
}

/** Fails unless all files of the manifest are readable and have their size. */
export const checkSizes = (directory: string, manifest: Manifest): Promise<void> =>
  eachTable(manifest, async (schema, { name, bytes }) => {
    const file = await stat(fileOf(directory, schema, name)).catch((cause: unknown) => {
      throw new Error(
        `${schema}.${name} is missing: all services must have the same directory of snapshots`,
        {
          cause,
        },
      )
    })
    if (file.size !== bytes) throw new Error(`${schema}.${name} has ${file.size} bytes, not ${bytes}`)
  })

/** Fails unless all files of the manifest have their content. */
export const checkContents = (directory: string, manifest: Manifest): Promise<void> =>
  eachTable(manifest, async (schema, { name, bytes, sha256 }) => {
    const { stream, measured } = openMeter(bytes)
    const nowhere = new Writable({ write: (_chunk, _encoding, done) => done() })
    await pipeline(createReadStream(fileOf(directory, schema, name)), stream, nowhere).catch(
      (cause: unknown) => {
        throw new Error(`${schema}.${name} cannot be read as it was written`, { cause })
      },
    )
    const actual = measured()
    if (actual.bytes !== bytes || actual.sha256 !== sha256)
      throw new Error(`${schema}.${name} is not as it was written`)
  })

async function eachTable(
  { schemas }: Manifest,
  look: (schema: string, table: StoredTable) => Promise<void>,
): Promise<void> {
  for (const [schema, { tables }] of Object.entries(schemas))
    for (const table of tables) await look(schema, table)
}

function isManifest(value: unknown): value is Manifest {
  const { format, schemas } = (value ?? {}) as Partial<Manifest>
  return format === 1 && isObject(schemas) && Object.entries(schemas).every(isStoredSchema)
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null
const isName = (value: unknown): boolean => typeof value === 'string' && /^\w+$/.test(value)
const isNumber = (value: unknown): boolean => Number.isSafeInteger(value) && Number(value) >= 0

function isStoredSchema([name, value]: [string, unknown]): boolean {
  const { migrations, tables } = (value ?? {}) as Partial<StoredSchema>
  return (
    isName(name) &&
    Array.isArray(migrations) &&
    migrations.every((one) => typeof one === 'string') &&
    Array.isArray(tables) &&
    tables.every(isStoredTable)
  )
}

function isStoredTable(value: unknown): boolean {
  const { name, columns, rows, bytes, sha256 } = (value ?? {}) as Partial<StoredTable>
  return (
    isName(name) &&
    Array.isArray(columns) &&
    columns.every(isName) &&
    isNumber(rows) &&
    isNumber(bytes) &&
    typeof sha256 === 'string'
  )
}
