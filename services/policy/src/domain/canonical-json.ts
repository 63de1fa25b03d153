/** JSON with the members of each object in the order of their names: equal for equal values. */
export const canonicalJson = (value: unknown): string => JSON.stringify(value, sorted)

const sorted = (_name: string, value: unknown): unknown =>
  value !== null && typeof value === 'object' && !Array.isArray(value)
    ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
    : value
