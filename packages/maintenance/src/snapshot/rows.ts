import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { fileOf, type Manifest } from './manifest.js'

type Row = Readonly<Record<string, string | null>>

/** Reads the rows of one table as text, before the snapshot is in a database. */
export async function* storedRows(
  directory: string,
  { schemas }: Manifest,
  schema: string,
  table: string,
): AsyncIterable<Row> {
  const columns = schemas[schema]?.tables.find(({ name }) => name === table)?.columns
  if (!columns) throw new Error(`the snapshot has no ${schema}.${table}`)
  const lines = createInterface({ input: createReadStream(fileOf(directory, schema, table)) })
  for await (const line of lines) {
    const values = line.split('\t').map(unescaped)
    yield Object.fromEntries(columns.map((column, i) => [column, values[i] ?? null]))
  }
}

const escaped: Readonly<Record<string, string>> = { b: '\b', f: '\f', n: '\n', r: '\r', t: '\t', v: '\v' }

/** Undoes the escapes of COPY. */
const unescaped = (text: string): string | null =>
  text === '\\N' ? null : text.replace(/\\(.)/g, (_, letter: string) => escaped[letter] ?? letter)
