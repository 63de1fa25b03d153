/** The place of an item in a list. */
export interface Place<T> {
  item: T | undefined
  before: Place<T>
  after: Place<T>
}

/**
 * Items in the order in which they came, which leave in any order. For lists that live long and whose items do not, in
 * place of a Set: each table that a Set outgrows points to the next one, so once one of them is in the old generation of
 * V8, all later items stay alive until the next full collection. Here an item that has left points to nothing.
 */
export interface List<T> {
  add(item: T): Place<T>
  /** False: it has left before. */
  remove(place: Place<T>): boolean
  first(): T | undefined
  takeFirst(): T | undefined
  /** Those that are there now. */
  items(): readonly T[]
  isEmpty(): boolean
}

export function openList<T>(): List<T> {
  const end = { item: undefined } as Place<T>
  end.before = end
  end.after = end
  const list: List<T> = {
    add(item) {
      const place = { item, before: end.before, after: end }
      end.before.after = place
      end.before = place
      return place
    },
    remove(place) {
      const { before, after } = place
      if (before === place) return false
      before.after = after
      after.before = before
      place.before = place
      place.after = place
      place.item = undefined
      return true
    },
    first: () => end.after.item,
    takeFirst() {
      const { item } = end.after
      list.remove(end.after)
      return item
    },
    items() {
      const items: T[] = []
      for (let place = end.after; place !== end; place = place.after) items.push(place.item as T)
      return items
    },
    isEmpty: () => end.after === end,
  }
  return list
}
