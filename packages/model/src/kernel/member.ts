/** The member of a document at a path: 'a.b' is member b of the object a. */
export function memberAt(value: unknown, path: string): unknown {
  let member = value
  for (const name of path.split('.')) {
    if (member === null || typeof member !== 'object') return undefined
    member = (member as Readonly<Record<string, unknown>>)[name]
  }
  return member
}
