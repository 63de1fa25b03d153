import { type Field, formOf, type StoredForm } from '@overlay/model'
import sql, { raw, type Sql } from 'sql-template-tag'

/** Encloses JSON that is not in the form of JSON.stringify. JSON text has no control characters of its own. */
const MARK = '\x01'
const mark = raw(`E'\\x01'`)

/** A column as JSON text in the form of JSON.stringify, apart from what is marked. Undefined: SQL cannot write it. */
export function jsonColumn(column: Sql, field: Field): Sql | undefined {
  const form = formOf(field)
  return form && writers[form](column)
}

export const jsonTime = (column: Sql): Sql => writers.time(column)
export const jsonFlag = (condition: Sql): Sql => sql`case when ${condition} then 'true' else 'false' end`

/** Text of SQL that is not in the form of JSON.stringify where the condition holds: other spaces, or a member twice. */
export const markedJson = (text: Sql, condition?: Sql): Sql => {
  const around = condition ? sql`repeat(${mark}, (${condition})::int)` : mark
  return sql`${around} || ${text} || ${around}`
}

const DAY_AND_TIME = `-MM-DD"T"HH24:MI:SS.MS"Z"`

const writers: Readonly<Record<StoredForm, (column: Sql) => Sql>> = {
  text: (column) => sql`coalesce(to_json(${column})::text, 'null')`,
  flag: (column) => sql`case ${column} when true then 'true' when false then 'false' else 'null' end`,
  // beyond the precision of numbers in clients, digits differ
  number: (column) => sql`
    case when ${column} between -9007199254740991 and 9007199254740991 then ${column}::text
         else coalesce(${markedJson(sql`${column}::text`)}, 'null') end`,
  time: (column) => sql`
    coalesce('"' || case when ${column} < '10000-01-01Z' then '' else '+0' end
                 || to_char(${column} at time zone 'utc', ${raw(`'YYYY${DAY_AND_TIME}'`)}) || '"', 'null')`,
  document: (column) => sql`
    case ${column}::text when '{}' then '{}' else coalesce(${markedJson(sql`${column}::text`)}, 'null') end`,
  set: (column) => sql`coalesce(to_json(nullif(${column}, '{}'))::text, 'null')`,
}

/** Text of such columns in the form of JSON.stringify. */
export function unmarked(text: string): string {
  if (!text.includes(MARK)) return text
  return text
    .split(MARK)
    .map((part, at) => (at % 2 === 0 ? part : JSON.stringify(JSON.parse(part))))
    .join('')
}
