import { BaseSequencer, type TestSpecification } from 'vitest/node'

/** Of those with other processes and foreign programs, whose waits other files fill. */
const longest = [
  'cluster/upgrade',
  'interop/enrollment',
  'tests/key-rotation',
  'cluster/cluster',
  'interop/traffic',
  'kubernetes/manifests',
  'tests/ports',
]

const projects = ['e2e', 'manifests', 'service', 'unit', 'compiled']

/** Starts the files that take longest first, so that no processor waits for them at the end. */
export class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    return files.toSorted((a, b) => rankOf(a) - rankOf(b) || (a.moduleId < b.moduleId ? -1 : 1))
  }
}

function rankOf({ project, moduleId }: TestSpecification): number {
  const at = longest.findIndex((name) => moduleId.endsWith(`${name}.test.ts`))
  return projects.indexOf(project.name) * 100 + (at < 0 ? longest.length : at)
}
