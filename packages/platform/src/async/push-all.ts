/** `list.push(...more)` puts every element on the stack, which ends at some hundred thousand. */
export function pushAll<T>(list: T[], more: Iterable<T>): void {
  for (const one of more) list.push(one)
}
