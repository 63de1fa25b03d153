const MAX_CHARACTERS = 16_384

/** The bytes of the only PEM block in a text, with any label. Text before it is skipped, as in other implementations. */
export function derOfPem(text: string, what: string, Refusal: new (message: string) => Error): Buffer {
  if (text === '') throw new Refusal(`${what} must not be null or empty`)
  if (text.length > MAX_CHARACTERS) throw new Refusal(`${what} is longer than ${MAX_CHARACTERS} characters`)
  const [, label = '', rest = ''] = /-----BEGIN ([A-Z0-9 ]{1,40})-----[ \t]*\r?\n(.*)/s.exec(text) ?? []
  const end = `-----END ${label}-----`
  const at = rest.indexOf(end)
  const body = rest.slice(0, Math.max(at, 0)).replace(/\s/g, '')
  if (at < 0 || !/^[A-Za-z0-9+/]+={0,2}$/.test(body)) throw new Refusal(`could not decode ${what} as PEM`)
  if (rest.slice(at + end.length).trim() !== '') throw new Refusal('unexpected PEM blocks at end of CSR')
  return Buffer.from(body, 'base64')
}
