import { printable } from '@overlay/process/printable'
import type { ChangeEvent } from '@overlay/store/audit'

/** One line for people: time, author, address, operation, entity, changed fields, request. */
export function auditText(event: ChangeEvent): string {
  const { timestamp, metadata, eventType, kind, entityId: id, entityName: name } = event
  const { source, requestId } = metadata
  return [
    timestamp,
    authorOf(metadata),
    ...(source?.remoteAddr ? [`from ${printable(source.remoteAddr)}`] : []),
    eventType,
    printable(kind),
    ...(name === undefined ? [printable(id)] : [quoted(name), `(${printable(id)})`]),
    ...changedFields(event),
    ...(requestId === undefined ? [] : [`request ${printable(requestId)}`]),
  ].join('  ')
}

function authorOf({ author: { type, id = '', name } }: ChangeEvent['metadata']): string {
  switch (type) {
    case 'controller':
      return 'the system'
    case 'unattributed':
      return 'a client without a session'
    case 'operator':
      return `operator ${quoted(name ?? '')} on this machine`
    default:
      return name ? `${quoted(name)} (${type} ${printable(id)})` : `${type} ${printable(id)}`
  }
}

/** The names of the fields that differ. */
function changedFields({ initialState: before, finalState: after }: ChangeEvent): string[] {
  if (!before || !after) return []
  const fields = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
    (field) => field !== 'updatedAt' && JSON.stringify(before[field]) !== JSON.stringify(after[field]),
  )
  return fields.length > 0 ? [`fields ${fields.map((field) => printable(field)).join(', ')}`] : []
}

const quoted = (text: string): string => `"${printable(text)}"`
