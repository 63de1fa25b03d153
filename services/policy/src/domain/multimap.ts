/** Several values per key; a key without values is removed. */
export type Multimap<K, V> = Map<K, Set<V>>

export function addTo<K, V>(map: Multimap<K, V>, key: K, value: V): void {
  const values = map.get(key)
  if (values) values.add(value)
  else map.set(key, new Set([value]))
}

export function takeFrom<K, V>(map: Multimap<K, V>, key: K, value: V): void {
  const values = map.get(key)
  values?.delete(value)
  if (values?.size === 0) map.delete(key)
}
