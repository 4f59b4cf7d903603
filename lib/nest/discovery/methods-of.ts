export type HandlerMethod = (...args: unknown[]) => unknown;

/** A method, and where it is declared. */
export interface DeclaredMethod {
  /** The prototype that declares the method: the class's own, or an ancestor's. */
  readonly owner: object;
  readonly methodName: string;
  readonly method: HandlerMethod;
}

/** The methods of a prototype and its ancestors, nearest first. Reads only descriptors, so that no getter runs. */
export function methodsOf(prototype: object | null): DeclaredMethod[] {
  const found = new Map<string, DeclaredMethod>();
  const overridden = new Set<string>();
  let owner = prototype;
  for (; owner && owner !== Object.prototype; owner = Object.getPrototypeOf(owner) as object | null) {
    for (const [methodName, { value }] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      if (overridden.has(methodName) || methodName === 'constructor') continue;
      overridden.add(methodName);
      if (typeof value === 'function') found.set(methodName, { owner, methodName, method: value as HandlerMethod });
    }
  }
  return [...found.values()];
}
