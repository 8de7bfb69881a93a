/** Rules of the style guide that no plugin has. */

/** `as` is for parse functions, where outside data becomes a type after it was looked at; `as const` is free. */
export const assertionsOnlyInParse = {
  meta: {
    type: 'problem',
    schema: [],
    messages: { outside: '`as` belongs in a function named parse…: parse the value, or narrow it.' },
  },
  create(context) {
    return {
      TSAsExpression(node) {
        if (isConst(node.typeAnnotation)) return;
        const inParse = context.sourceCode.getAncestors(node).some((ancestor) => /^parse/.test(nameOf(ancestor)));
        if (!inParse) context.report({ node, messageId: 'outside' });
      },
    };
  },
};

function isConst(type) {
  return type.type === 'TSTypeReference' && type.typeName.name === 'const';
}

/** The name of a function, method, or constant that holds one. */
function nameOf(node) {
  switch (node.type) {
    case 'FunctionDeclaration':
    case 'VariableDeclarator':
      return node.id?.name ?? '';
    case 'MethodDefinition':
    case 'Property':
      return node.key.name ?? '';
    default:
      return '';
  }
}
