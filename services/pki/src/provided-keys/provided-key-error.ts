/** A provided key cannot be used. The message is one line: where, what is wrong, what to do. */
export class ProvidedKeyError extends Error {
  override readonly name = 'ProvidedKeyError'

  constructor(where: string, problem: string, remedy: string) {
    super(`${where}: ${problem}: ${remedy}`)
  }
}
