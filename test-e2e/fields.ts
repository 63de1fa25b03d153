/** Members of a body by name, nested ones with dots: R required, O optional. */
export type Letters = Readonly<Record<string, string>>

export interface Schema {
  readonly [keyword: string]: unknown
  readonly $ref?: string
  readonly allOf?: readonly Schema[]
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: readonly string[]
  readonly items?: Schema
}

/** The members of a body of this schema. A member is required if its object is sent. */
export function lettersOf(schema: Schema, refer: (name: string) => Schema = unknownName, at = ''): Letters {
  const { $ref, allOf = [], properties = {}, required = [], items } = schema
  const inherited = [...allOf, ...($ref === undefined ? [] : [refer($ref.split('/').pop() ?? '')])]
  return Object.assign(
    {},
    ...inherited.map((part) => lettersOf(part, refer, at)),
    ...(items ? [lettersOf(items, refer, `${at}*.`)] : []),
    ...Object.entries(properties).map(([name, member]) => ({
      [at + name]: required.includes(name) ? 'R' : 'O',
      ...lettersOf(member, refer, `${at}${name}.`),
    })),
    ...required.filter((name) => !(name in properties)).map((name) => ({ [at + name]: 'R' })),
  ) as Letters
}

/** The letters of create, replace and patch side by side, with a dash for bodies without the member. */
export function columnsOf(bodies: readonly (Letters | undefined)[]): Letters {
  const names = [...new Set(bodies.flatMap((letters) => Object.keys(letters ?? {})))].sort()
  return Object.fromEntries(names.map((name) => [name, bodies.map((body) => body?.[name] ?? '-').join('')]))
}

function unknownName(name: string): never {
  throw new Error(`no definition of ${name}`)
}
