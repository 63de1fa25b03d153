/** The value of each key, computed once. */
export function memoized<K extends object, V>(compute: (key: K) => V): (key: K) => V {
  const values = new WeakMap<K, V>()
  return (key) => {
    let value = values.get(key)
    if (value === undefined) {
      value = compute(key)
      values.set(key, value)
    }
    return value
  }
}
