/** `list.push(...more)` puts all elements on the stack, which overflows at some hundred thousand. */
export function pushAll<T>(list: T[], more: Iterable<T>): void {
  for (const one of more) list.push(one)
}
