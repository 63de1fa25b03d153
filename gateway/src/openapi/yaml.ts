/** JSON data in block style. Names and texts are quoted as JSON quotes them, which YAML reads the same. */
export function yamlOf(value: unknown, indent = ''): string {
  if (typeof value !== 'object' || value === null) return ` ${JSON.stringify(value)}\n`
  const inner = `${indent}  `
  const lines = Array.isArray(value)
    ? value.map((item) => `${indent}-${yamlOf(item, inner)}`)
    : Object.entries(value)
        .filter(([, member]) => member !== undefined)
        .map(([name, member]) => `${indent}${JSON.stringify(name)}:${yamlOf(member, inner)}`)
  if (lines.length > 0) return `\n${lines.join('')}`
  return Array.isArray(value) ? ' []\n' : ' {}\n'
}
