import { printable } from '@overlay/platform/process/printable'
import type { AuditRow } from './audit-rows.js'

/** One line for people: time, author, address, operation, entity, changed fields, request. */
export function auditText(row: AuditRow): string {
  const { at, kind, entity_id: id, source_address: address, request_id: request } = row
  const name = nameOf(row)
  return [
    at,
    authorOf(row),
    ...(address ? [`from ${printable(address)}`] : []),
    operationOf(row),
    printable(kind),
    ...(name === undefined ? [printable(id)] : [quoted(name), `(${printable(id)})`]),
    ...changedFields(row),
    ...(request === '' ? [] : [`request ${printable(request)}`]),
  ].join('  ')
}

function authorOf({
  identity_id: id,
  identity_name: name,
  source_address: address,
  author_kind,
}: AuditRow): string {
  if (id !== '') {
    const kind = author_kind ?? 'deleted identity or router'
    return name ? `${quoted(name)} (${kind} ${printable(id)})` : `${kind} ${printable(id)}`
  }
  if (name) return `operator ${quoted(name)} on this machine`
  if (address === null) return 'the system, or a client without a session'
  return address === '' ? 'the system' : 'a client without a session'
}

const operationOf = ({ before, after }: AuditRow): string =>
  before === null ? 'created' : after === null ? 'deleted' : 'changed'

function nameOf({ before, after }: AuditRow): string | undefined {
  const name = after?.name ?? before?.name ?? after?.username ?? before?.username
  return typeof name === 'string' ? name : undefined
}

/** The names of the fields that differ. */
function changedFields({ before, after }: AuditRow): string[] {
  if (!before || !after) return []
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (field) => field !== 'updatedAt' && JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  )
  return fields.length > 0 ? [`fields ${fields.map((field) => printable(field)).join(', ')}`] : []
}

const quoted = (text: string): string => `"${printable(text)}"`
